#include "timing_report.h"

#include <algorithm>
#include <cstdio>
#include <map>
#include <tuple>

#include "timing_figures.h"

namespace pto::engine {
namespace {

constexpr size_t kMostCores = 4096;  // listed one by one
constexpr size_t kMostSteps = 200;   // of the critical path
constexpr double kBound = 0.8;       // share of the time from which something is what bounds the kernel

std::string Number(double x) {
  char text[32];
  std::snprintf(text, sizeof(text), "%.10g", x);
  return text;
}

std::string Text(const std::string& s) { return "\"" + s + "\""; }

std::string Percent(double share) { return std::to_string(static_cast<int>(share * 100 + 0.5)) + " %"; }

const char* WorkOf(int pipe) {
  static const char* const kWork[] = {"issuing commands", "vector functions", "matrix products",   "loads from L1",
                                      "loads from GM",    "stores from UB",   "stores of products"};
  return kWork[pipe];
}

}  // namespace

std::string TimingReport::CoreName(uint32_t block, size_t core) const {
  static const char* const kNames[] = {"AIC", "AIV0", "AIV1"};
  return replay_.trace(block).cores.size() > 1 ? kNames[core] : "";
}

// --- the critical path ---

std::vector<TimingReport::Step> TimingReport::CriticalPath() const {
  std::vector<Step> steps;  // the last one first
  const auto add = [&](const TaskRef& at, TimingPlace place, int pipe, double cycles) {
    if (cycles <= 0) return;
    Step step{places_.line(place), places_.op(place), kPipeNames[pipe], at.block, CoreName(at.block, at.core), cycles};
    if (!steps.empty()) {
      Step& last = steps.back();
      if (last.line == step.line && last.op == step.op && last.pipe == step.pipe && last.block == step.block &&
          last.core == step.core) {
        last.cycles += cycles;
        return;
      }
    }
    steps.push_back(std::move(step));
  };
  // From the end back over what each start was waiting for; a block waits for the one that had its core.
  uint32_t block = static_cast<uint32_t>(replay_.last_block());
  for (;;) {
    const BlockTimes& end = replay_.blocks()[block];
    TimingPlace place = places_.scalar();
    add({block, end.last_core, kPipeS, 0}, place, kPipeS, end.end - end.last_time);
    TaskRef at = end.last;
    double until = end.last_time;
    while (at.Known()) {
      const std::vector<TaskTime>& tasks = replay_.blocks()[at.block].cores[at.core].tasks[at.pipe];
      if (tasks.empty()) break;  // not kept
      const TaskTime& time = tasks[at.index];
      if (at.pipe == kPipeS) {
        add(at, place, kPipeS, until - time.cause_time);
      } else {
        place = replay_.trace(at.block).cores[at.core].tasks[at.pipe][at.index].place;
        add(at, place, at.pipe, until - time.start);
        // Until it was issued, the time is that of the scalar unit; behind a signal, that of the flag.
        add(at, place,
            time.cause.Known() && time.cause.pipe != kPipeS && time.waited > 0 ? at.pipe : static_cast<uint8_t>(kPipeS),
            time.start - time.cause_time);
      }
      block = at.block;
      until = time.cause_time;
      at = time.cause;
    }
    if (replay_.blocks()[block].before < 0) break;
    block = static_cast<uint32_t>(replay_.blocks()[block].before);
  }
  std::reverse(steps.begin(), steps.end());
  return steps;
}

namespace {

// The same line again and again, as in a loop, becomes one step.
template <class Step>
std::vector<Step> Merged(const std::vector<Step>& steps) {
  std::map<std::tuple<int, std::string, std::string, std::string>, size_t> known;
  std::vector<Step> merged;
  for (const Step& s : steps) {
    const auto [it, fresh] = known.try_emplace(std::make_tuple(s.line, s.op, s.pipe, s.core), merged.size());
    if (fresh) {
      merged.push_back(s);
    } else {
      merged[it->second].cycles += s.cycles;
      merged[it->second].block = s.block;
    }
  }
  return merged;
}

}  // namespace

std::string TimingReport::BoundBy(const std::vector<Step>& path) const {
  const double cycles = std::max(1.0, replay_.cycles());
  const double gm = replay_.gm_busy() / cycles;
  if (gm >= kBound) return "the bandwidth of GM: " + Percent(gm) + " of it is in use";
  const uint32_t block = static_cast<uint32_t>(replay_.last_block());
  const BlockTimes& times = replay_.blocks()[block];
  const double span = std::max(1.0, times.end - times.start);
  double most = 0;
  int pipe = kPipeS;
  size_t where = 0;
  for (size_t c = 0; c < times.cores.size(); ++c) {
    for (int p = 0; p < kPipes; ++p) {
      const double busy = p == kPipeS ? times.cores[c].issuing : times.cores[c].busy[p];
      if (busy > most) most = busy, pipe = p, where = c;
    }
  }
  const std::string core = CoreName(block, where);
  const std::string who = std::string(kPipeNames[pipe]) + " of " + (core.empty() ? "" : core + " of ") + "block " +
                          std::to_string(block) + " is busy for " + Percent(most / span) +
                          " of its time: " + WorkOf(pipe);
  if (most >= kBound * span) return who;
  const auto longest =
      std::max_element(path.begin(), path.end(), [](const Step& a, const Step& b) { return a.cycles < b.cycles; });
  if (longest == path.end()) return "nothing: the kernel does nothing that takes time";
  return "latency: commands wait for each other, of the longest chain " + Percent(longest->cycles / cycles) + " is " +
         longest->op + " (line " + std::to_string(longest->line) + ", " + longest->pipe + "); " + who;
}

// --- the report ---

std::string TimingReport::Cores() const {
  std::string out;
  size_t listed = 0;
  for (uint32_t b = 0; b < replay_.blocks().size(); ++b) {
    const BlockTimes& block = replay_.blocks()[b];
    for (size_t c = 0; c < block.cores.size() && listed < kMostCores; ++c, ++listed) {
      const CoreTimes& core = block.cores[c];
      out += std::string(out.empty() ? "" : ", ") + "{\"block\": " + std::to_string(b) +
             ", \"core\": " + Text(CoreName(b, c)) + ", \"cycles\": " + Number(core.end - block.start) +
             ", \"pipes\": {\"S\": {\"busy\": " + Number(core.issuing) +
             ", \"commands\": " + std::to_string(replay_.trace(b).cores[c].instructions) + "}";
      for (int p = 1; p < kPipes; ++p) {
        if (core.commands[p] == 0) continue;
        out += ", " + Text(kPipeNames[p]) + ": {\"busy\": " + Number(core.busy[p]) +
               ", \"commands\": " + std::to_string(core.commands[p]) + "}";
      }
      out += "}}";
    }
  }
  return out;
}

std::string TimingReport::Lines() const {
  struct Line {
    double cycles = 0;
    int64_t executions = 0;
  };
  std::map<std::tuple<int, std::string, std::string>, Line> lines;
  std::vector<int64_t> executions(places_.size());
  std::vector<uint8_t> pipe_of(places_.size(), kPipeS);
  for (uint32_t b = 0; b < replay_.blocks().size(); ++b) {
    for (const CoreTrace& core : replay_.trace(b).cores) {
      for (int p = 1; p < kPipes; ++p) {
        for (const TimingTask& t : core.tasks[p]) ++executions[t.place], pipe_of[t.place] = static_cast<uint8_t>(p);
      }
    }
  }
  for (TimingPlace place = 0; place < places_.size(); ++place) {
    const TimingTotals::Line& inside = totals_.lines[place];
    if (executions[place] == 0 && inside.executions == 0) continue;
    const bool function = executions[place] && places_.KindOf(place) == CommandKind::kVector;
    double cycles = replay_.place_cycles()[place];
    // What happens inside a function is told by its lines.
    if (function) cycles = static_cast<double>(executions[place]) * (figure::kVectorLaunch + figure::kVectorDrain);
    if (inside.executions) cycles = static_cast<double>(inside.cycles);
    const char* pipe = kPipeNames[inside.executions ? static_cast<int>(kPipeV) : pipe_of[place]];
    Line& line = lines[{places_.line(place), places_.op(place), pipe}];
    line.cycles += cycles;
    line.executions = std::max(line.executions, executions[place] + inside.executions);
  }
  std::vector<std::pair<std::tuple<int, std::string, std::string>, Line>> sorted(lines.begin(), lines.end());
  std::stable_sort(sorted.begin(), sorted.end(),
                   [](const auto& a, const auto& b) { return a.second.cycles > b.second.cycles; });
  std::string out;
  for (const auto& [key, line] : sorted) {
    const auto& [number, op, pipe] = key;
    out += std::string(out.empty() ? "" : ", ") + "{\"line\": " + std::to_string(number) + ", \"op\": " + Text(op) +
           ", \"pipe\": " + Text(pipe) + ", \"cycles\": " + Number(line.cycles) +
           ", \"executions\": " + std::to_string(line.executions) + "}";
  }
  return out;
}

std::string TimingReport::Timing(std::vector<std::string>* notes) const {
  size_t cores = 0;
  for (const BlockTimes& block : replay_.blocks()) cores += block.cores.size();
  if (cores > kMostCores) {
    notes->push_back("the times of cores are those of the first " + std::to_string(kMostCores) + " of " +
                     std::to_string(cores));
  }
  const double cycles = replay_.cycles(), seconds = std::max(1.0, cycles) / (figure::kClockGhz * 1e9);
  const int64_t bytes = totals_.bytes[0] + totals_.bytes[1];
  // Of matrix products at the rates of their types; else of f32 vectors, both ports.
  const double hertz = figure::kClockGhz * 1e9;
  const double peak = totals_.mad_operations ? static_cast<double>(totals_.mad_operations) / totals_.mad_peak_cycles *
                                                   figure::kCubeCores * hertz
                                             : 64 * 2 * figure::kVectorCores * hertz;
  const std::vector<Step> path = Merged(CriticalPath());
  std::string steps;
  for (size_t i = 0; i < path.size() && i < kMostSteps; ++i) {
    const Step& s = path[i];
    steps += std::string(steps.empty() ? "" : ", ") + "{\"line\": " + std::to_string(s.line) +
             ", \"op\": " + Text(s.op) + ", \"pipe\": " + Text(s.pipe) + ", \"block\": " + std::to_string(s.block) +
             ", \"core\": " + Text(s.core) + ", \"cycles\": " + Number(s.cycles) + "}";
  }
  return "{\"cycles\": " + Number(cycles) + ", \"microseconds\": " + Number(cycles / (figure::kClockGhz * 1e3)) +
         ", \"clock_ghz\": " + Number(figure::kClockGhz) + ", \"bound_by\": " + Text(BoundBy(path)) + ", \"cores\": [" +
         Cores() + "], \"bytes\": {\"gm_read\": " + std::to_string(totals_.bytes[0]) +
         ", \"gm_written\": " + std::to_string(totals_.bytes[1]) +
         "}, \"achieved\": {\"gm_bytes_per_second\": " + Number(static_cast<double>(bytes) / seconds) +
         ", \"flops\": " + Number(static_cast<double>(totals_.mad_operations + totals_.vector_operations) / seconds) +
         "}, \"peak\": {\"gm_bytes_per_second\": " + Number(figure::kGmBytesPerCycle * hertz) +
         ", \"flops\": " + Number(peak) + "}, \"lines\": [" + Lines() + "], \"critical_path\": [" + steps + "]}";
}

// --- the timeline ---

int64_t TimingReport::CountEvents(uint32_t block) const {
  int64_t n = 0;
  for (const CoreTimes& core : replay_.blocks()[block].cores) {
    for (int p = 1; p < kPipes; ++p) {
      for (const TaskTime& t : core.tasks[p]) n += (t.waited > 0) + (t.complete > t.start);
    }
  }
  return n;
}

void TimingReport::AddEvents(uint32_t block, int64_t most, std::string* out) const {
  const BlockTimes& times = replay_.blocks()[block];
  for (size_t c = 0; c < times.cores.size(); ++c) {
    const std::string core = CoreName(block, c);
    for (int p = 1; p < kPipes; ++p) {
      const std::vector<TaskTime>& tasks = times.cores[c].tasks[p];
      double covered = 0;
      for (size_t i = 0; i < tasks.size(); ++i) {
        const TimingPlace place = replay_.trace(block).cores[c].tasks[p][i].place;
        const auto add = [&](double start, double end, const char* kind) {
          if (end <= start || most-- <= 0) return;
          *out += (out->empty() ? "[" : ", [") + std::to_string(block) + ", " + Text(core) + ", " +
                  Text(kPipeNames[p]) + ", " + std::to_string(places_.line(place)) + ", " + Text(places_.op(place)) +
                  ", " + Number(start) + ", " + Number(end) + ", " + Text(kind) + "]";
        };
        const TaskTime& t = tasks[i];
        // While something is still on its way, the pipe does not count as waiting. Where the next command overlaps with
        // one, this one is shown until the pipe was free.
        add(std::max(covered, t.start - t.waited), t.start, "wait");
        double end = t.complete;
        for (size_t next = i + 1; next < tasks.size() && tasks[next].start < end; ++next) {
          if (tasks[next].complete > tasks[next].start) end = std::max(t.taken, tasks[next].start);
        }
        covered = std::max(covered, end);
        add(t.start, end, "run");
      }
    }
  }
}

std::string TimingReport::Timeline(int64_t max_events, std::vector<std::string>* notes) const {
  const uint32_t n = static_cast<uint32_t>(replay_.blocks().size());
  std::vector<int64_t> counts(n);
  int64_t all = 0;
  for (uint32_t b = 0; b < n; ++b) all += counts[b] = CountEvents(b);
  std::vector<uint32_t> shown;
  const bool sampled = all > max_events || replay_.forgot();
  if (!sampled) {
    for (uint32_t b = 0; b < n; ++b) shown.push_back(b);
  } else {
    // The block that ends last, then blocks evenly from the first on.
    const uint32_t last = static_cast<uint32_t>(replay_.last_block());
    const int64_t most =
        std::max<int64_t>(1, max_events / std::max<int64_t>(1, *std::max_element(counts.begin(), counts.end())));
    const uint32_t step = std::max<uint32_t>(1, n / static_cast<uint32_t>(std::min<int64_t>(most, n)));
    int64_t left = max_events - counts[last];
    shown.push_back(last);
    for (uint32_t b = 0; b < n; b += step) {
      if (b == last || counts[b] == 0 || counts[b] > left) continue;
      left -= counts[b];
      shown.push_back(b);
    }
    std::sort(shown.begin(), shown.end());
    notes->push_back(
        "the timeline holds " + std::to_string(shown.size()) + " of " + std::to_string(n) + " blocks" +
        (counts[last] > max_events ? ", and of that only the first " + std::to_string(max_events) + " events" : ""));
  }
  std::string events;
  for (uint32_t b : shown) {
    std::string text;
    AddEvents(b, max_events, &text);
    if (!text.empty()) events += (events.empty() ? "" : ", ") + text;
  }
  return std::string("{\"sampled\": ") + (sampled ? "true" : "false") + ", \"events\": [" + events + "]}";
}

std::string TimingReport::Memory(int64_t max_extents, std::vector<std::string>* notes) const {
  std::string out;
  int64_t left = max_extents;
  bool cut = false;
  for (uint32_t b = 0; b < replay_.blocks().size(); ++b) {
    const BlockTimes& times = replay_.blocks()[b];
    for (size_t c = 0; c < times.cores.size(); ++c) {
      for (const TimingExtent& e : replay_.trace(b).cores[c].extents) {
        if (times.cores[c].tasks[e.pipe].empty()) continue;
        if (left-- <= 0) {
          cut = true;
          break;
        }
        const TaskTime& t = times.cores[c].tasks[e.pipe][e.task];
        const bool mixed = times.cores.size() > 1, ub = e.memory <= static_cast<uint8_t>(Memory::kUb1);
        const size_t owner = mixed && ub ? 1u + e.memory : 0u;
        out += std::string(out.empty() ? "" : ", ") + "{\"memory\": " + Text(kMemoryNames[e.memory]) +
               ", \"block\": " + std::to_string(b) + ", \"core\": " + Text(CoreName(b, owner)) +
               ", \"begin\": " + std::to_string(e.begin) + ", \"end\": " + std::to_string(e.end) +
               ", \"first_cycle\": " + Number(t.start) + ", \"last_cycle\": " + Number(t.complete) +
               ", \"line\": " + std::to_string(places_.line(e.place)) +
               ", \"access\": " + Text(e.write ? "write" : "read") + "}";
      }
    }
  }
  if (cut) notes->push_back("the memory map holds the first " + std::to_string(max_extents) + " accesses");
  if (static_cast<int64_t>(replay_.blocks().size()) > kBlocksWithExtents) {
    notes->push_back("the memory map holds the first " + std::to_string(kBlocksWithExtents) + " blocks");
  }
  return "[" + out + "]";
}

}  // namespace pto::engine
