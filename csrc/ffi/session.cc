#include "ffi/session.h"

#include <tvm/ffi/cast.h>
#include <tvm/ffi/container/array.h>
#include <tvm/ffi/extra/json.h>
#include <tvm/ffi/function.h>
#include <tvm/ffi/reflection/registry.h>

#include <atomic>
#include <memory>
#include <mutex>
#include <utility>

#include "engine/json_text.h"
#include "engine/report.h"
#include "ffi/settings.h"

namespace pto::ffi {
namespace {

namespace tf = ::tvm::ffi;
using engine::Quoted;
using engine::StatsText;

struct Session {
  SimulationChecks checks;
  bool raise = true;
  bool timing = false;
  bool timeline = false;
  int64_t max_events = 0;
  std::string options;  // as given
  std::vector<std::string> reports;
};

std::mutex mutex;
std::vector<std::shared_ptr<Session>> sessions;
std::atomic<int64_t> blocks_done{0}, blocks_total{0};
thread_local std::string failed_report;  // of the launch of this thread that findings ended

std::shared_ptr<Session> Current() {
  std::lock_guard<std::mutex> lock(mutex);
  return sessions.empty() ? nullptr : sessions.back();
}

std::string OrNull(const std::string& json) { return json.empty() ? "null" : json; }

std::string ReportText(const std::string& options, const LaunchName& name, int64_t grid,
                       const engine::LaunchReport& report, const std::string& error) {
  std::string notes;
  for (const std::string& note : report.notes) notes += (notes.empty() ? "" : ", ") + Quoted(note);
  return "{\"kernel\": " + Quoted(name.kernel) + ", \"grid\": " + std::to_string(grid) +
         ", \"file\": " + Quoted(name.file) + ", \"text\": " + Quoted(name.text) + ", \"options\": " + options +
         ", \"error\": " + (error.empty() ? "null" : Quoted(error)) + ", \"notes\": [" + notes +
         "], \"stats\": " + StatsText(report.stats) + ", \"findings\": " + engine::FindingsJson(report.findings) +
         ", \"timing\": " + OrNull(report.timing) + ", \"timeline\": " + OrNull(report.timeline) +
         ", \"memory\": " + OrNull(report.memory) + "}";
}

std::string AllReports(const Session& session) {
  std::string out = "[";
  for (const std::string& report : session.reports) out += (out.size() > 1 ? ", " : "") + report;
  return out + "]";
}

void Begin(const std::string& text) {
  auto session = std::make_shared<Session>();
  session->options = text;
  const tf::json::Object o = tf::json::Parse(tf::String(text)).cast<tf::json::Object>();
  const auto string = [&](const char* key) { return std::string(o[key].cast<tf::String>()); };
  session->checks = ParseChecks(string("check"), string("policy"));
  session->raise = string("race") == "raise";
  session->timing = o["timing"].cast<bool>();
  session->timeline = o["timeline"].cast<bool>();
  session->max_events = o["max_events"].cast<int64_t>();
  std::lock_guard<std::mutex> lock(mutex);
  sessions.push_back(std::move(session));
}

std::string End() {
  std::lock_guard<std::mutex> lock(mutex);
  if (sessions.empty()) return "[]";
  const std::shared_ptr<Session> session = sessions.back();
  sessions.pop_back();
  return AllReports(*session);
}

std::string Reports() {
  std::lock_guard<std::mutex> lock(mutex);
  return sessions.empty() ? "[]" : AllReports(*sessions.back());
}

}  // namespace

void LaunchInSession(const engine::Program& program, const LaunchName& name, const std::vector<engine::Arg>& args,
                     int64_t grid, engine::LaunchOptions options, engine::LaunchStats* stats) {
  const std::shared_ptr<Session> session = Current();
  const SimulationChecks checks = session ? session->checks : ChecksFromEnvironment();
  options.check = checks.check, options.policy = checks.policy, options.policy_seed = checks.seed;
  blocks_done = 0, blocks_total = grid;
  options.blocks_done = &blocks_done;
  engine::LaunchReport report;
  options.report = &report;
  if (session) {
    options.timing = session->timing, options.timeline = session->timeline, options.max_events = session->max_events;
  }
  const auto keep = [&](std::string text) {
    std::lock_guard<std::mutex> lock(mutex);
    session->reports.push_back(std::move(text));
  };
  try {
    engine::Launch(program, name.kernel, args, grid, options, &report.stats);
  } catch (const engine::Error& error) {
    if (session) keep(ReportText(session->options, name, grid, report, error.what()));
    throw;
  }
  if (stats) *stats = report.stats;
  const bool failed = !report.findings.empty() && (!session || session->raise);
  if (!session && !failed) return;
  std::string text = ReportText(session ? session->options : OptionsText(), name, grid, report, "");
  if (failed) failed_report = text;
  if (session) keep(std::move(text));
  if (failed) throw engine::FindingError(name.kernel, name.file, report.findings);
}

TVM_FFI_STATIC_INIT_BLOCK() {
  tf::reflection::GlobalDef()
      .def("tilelang_pto.sim_session_begin", [](tf::String options) { Begin(std::string(options)); })
      .def("tilelang_pto.sim_session_end", [] { return tf::String(End()); })
      .def("tilelang_pto.sim_session_reports", [] { return tf::String(Reports()); })
      .def("tilelang_pto.sim_failed_report", [] { return tf::String(std::exchange(failed_report, "")); })
      .def("tilelang_pto.sim_progress", [] { return tf::Array<int64_t>({blocks_done.load(), blocks_total.load()}); });
}

}  // namespace pto::ffi
