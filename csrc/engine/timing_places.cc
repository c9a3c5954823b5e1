#include "timing_places.h"

namespace pto::engine {
namespace {

CommandKind KindOfOp(const std::string& op) {
  static const std::unordered_map<std::string, CommandKind> kinds = {
      {"vecscope", CommandKind::kVector},
      {"simt", CommandKind::kVector},
      {"mte_gm_ub", CommandKind::kGmUb},
      {"mte_ub_gm", CommandKind::kUbGm},
      {"mte_gm_l1", CommandKind::kGmL1},
      {"mte_gm_l1_frac", CommandKind::kGmL1},
      {"mte_ub_l1", CommandKind::kUbL1},
      {"mte_l1_l0a", CommandKind::kL1L0},
      {"mte_l1_l0b", CommandKind::kL1L0},
      {"mte_l1_l0a_mx", CommandKind::kL1Scale},
      {"mte_l1_l0b_mx", CommandKind::kL1Scale},
      {"mte_l1_bt", CommandKind::kL1Bias},
      {"mte_l1_fb", CommandKind::kL1Fixpipe},
      {"mte_l1_ub", CommandKind::kL1Ub},
      {"mte_l0c_gm", CommandKind::kFixpipe},
      {"mte_l0c_ub", CommandKind::kFixpipe},
      {"mte_l0c_l1", CommandKind::kFixpipe},
      {"mad", CommandKind::kMad},
      {"mad_acc", CommandKind::kMad},
      {"mad_bias", CommandKind::kMad},
      {"mad_mx", CommandKind::kMad},
      {"mad_mx_acc", CommandKind::kMad},
      {"mad_mx_bias", CommandKind::kMad},
      {"set_flag", CommandKind::kSync},
      {"wait_flag", CommandKind::kSync},
      {"get_buf", CommandKind::kSync},
      {"rls_buf", CommandKind::kSync},
      {"pipe_barrier", CommandKind::kSync},
      {"set_intra_block", CommandKind::kSync},
      {"wait_intra_block", CommandKind::kSync},
      {"set_cross_block", CommandKind::kSync},
      {"wait_cross_block", CommandKind::kSync},
  };
  const auto found = kinds.find(op);
  return found == kinds.end() ? CommandKind::kMemory : found->second;
}

}  // namespace

TimingPlaces::TimingPlaces(const CompiledFunction& function) {
  Add(function.code);
  if (function.vector_side) Add(function.vector_side->code);
  static const std::string kScalarCode = "scalar code";
  debug_.push_back({&kScalarCode, function.line});
  kinds_.push_back(CommandKind::kSync);
}

void TimingPlaces::Add(const Code& code) {
  first_[&code] = static_cast<TimingPlace>(debug_.size());
  for (const DebugInfo& d : code.debug) {
    debug_.push_back(d);
    kinds_.push_back(KindOfOp(d.op ? *d.op : ""));
  }
  for (const auto& child : code.children) Add(*child);
}

}  // namespace pto::engine
