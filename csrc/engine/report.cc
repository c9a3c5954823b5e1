#include "report.h"

#include "json_text.h"

namespace pto::engine {
namespace {

std::string PlaceText(const AccessPlace& p, bool with_block) {
  std::string s = std::string(p.write ? "the write" : "the read") + " by " + p.op + " (line " + std::to_string(p.line) +
                  ", pipe " + p.pipe;
  if (!p.core.empty()) s += " of " + p.core;
  if (with_block) s += ", block " + std::to_string(p.block);
  if (p.thread >= 0) s += ", thread " + std::to_string(p.thread);
  if (p.execution > 1) s += ", execution " + std::to_string(p.execution);
  return s + ")";
}

std::string PlaceJson(const AccessPlace& p) {
  return "{\"line\": " + std::to_string(p.line) + ", \"op\": " + Quoted(p.op) + ", \"pipe\": " + Quoted(p.pipe) +
         ", \"block\": " + std::to_string(p.block) + ", \"core\": " + Quoted(p.core) +
         ", \"access\": " + (p.write ? "\"write\"" : "\"read\"") + ", \"execution\": " + std::to_string(p.execution) +
         ", \"thread\": " + (p.thread < 0 ? "null" : std::to_string(p.thread)) + "}";
}

std::string Sentence(const std::vector<Finding>& findings) {
  const size_t others = findings.size() - 1;
  return Describe(findings.front()) + (others ? " (and " + std::to_string(others) + " more)" : "");
}

ErrorPlace Place(const std::string& kernel, const std::string& file, const Finding& f) {
  ErrorPlace place;
  place.function = kernel;
  place.file = file;
  place.op = f.second.op;
  place.line = f.second.line;
  place.core = f.second.block;
  place.core_name = f.second.core;
  place.pipe = f.second.pipe;
  return place;
}

}  // namespace

const char* HazardName(bool first_writes, bool second_writes) {
  return first_writes ? (second_writes ? "WAW" : "RAW") : "WAR";
}

std::string TensorName(const Function& function, uint32_t tensor) {
  for (const Parameter& p : function.parameters) {
    if (p.type.kind == Kind::kPointer && --tensor == 0) return p.name;
  }
  return "?";
}

std::string Describe(const Finding& f) {
  if (f.kind != "race") return f.message;
  const bool blocks = f.first.block != f.second.block;
  std::string where = f.memory == "GM" && !f.tensor.empty() ? "tensor " + f.tensor : f.memory;
  if (!f.views.empty()) where += " (" + f.views + ")";
  return f.hazard + " race on " + where + " bytes " + std::to_string(f.begin) + " to " + std::to_string(f.end - 1) +
         ": nothing orders " + PlaceText(f.first, blocks) + " and " + PlaceText(f.second, blocks) + "; " + f.missing;
}

FindingError::FindingError(const std::string& kernel, const std::string& file, const std::vector<Finding>& findings)
    : Error(Sentence(findings), Place(kernel, file, findings.front())) {}

std::string FindingsJson(const std::vector<Finding>& findings) {
  std::string out = "[";
  for (const Finding& f : findings) {
    out += std::string(out.size() > 1 ? ", " : "") + "{\"kind\": " + Quoted(f.kind) +
           ", \"hazard\": " + (f.hazard.empty() ? "null" : Quoted(f.hazard)) + ", \"message\": " + Quoted(Describe(f)) +
           ", \"missing\": " + Quoted(f.missing) + ", \"memory\": " + Quoted(f.memory) +
           ", \"views\": " + Quoted(f.views) + ", \"tensor\": " + (f.tensor.empty() ? "null" : Quoted(f.tensor)) +
           ", \"begin\": " + std::to_string(f.begin) + ", \"end\": " + std::to_string(f.end) +
           ", \"count\": " + std::to_string(f.count) + ", \"first\": " + PlaceJson(f.first) +
           ", \"second\": " + PlaceJson(f.second) + "}";
  }
  return out + "]";
}

}  // namespace pto::engine
