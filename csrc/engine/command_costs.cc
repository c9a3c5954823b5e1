#include "command_costs.h"

#include <algorithm>
#include <cmath>

#include "timing_figures.h"

namespace pto::engine {
namespace {

constexpr int64_t kSector = static_cast<int64_t>(figure::kGmSectorBytes);

double CeilTo(double value, double unit) { return std::ceil(value / unit) * unit; }

// Share of whole sectors that rows of this width fill.
double SectorShare(double width) { return width / CeilTo(width, figure::kGmSectorBytes); }

double LoadRate(double width) {
  if (width < 128) return figure::kGmUbNarrowRate;
  if (width < 256) return std::min(figure::kGmUbRate, figure::kGmUbMediumRate * SectorShare(width));
  return figure::kGmUbRate;
}

double StoreRate(double width) {
  if (width < 128) return figure::kUbGmNarrowRate;
  if (width < 256) return figure::kUbGmMediumRate * SectorShare(width);
  return width < 512 ? figure::kUbGmLongRate : figure::kUbGmRate;
}

// Rows that follow each other in both memories are one.
double UbL1Rate(double width, bool rows) {
  if (!rows) return figure::kUbL1Rate;
  return std::min(figure::kUbL1Rate,
                  figure::kUbL1RowRate * (width < figure::kUbL1ShortRow ? figure::kUbL1ShortRowShare : 1) * width);
}

}  // namespace

void CommandAccesses::Rows::Close() {
  if (rows == 0 || end_ == begin_) return;
  const double sectors = static_cast<double>(((end_ - 1) / kSector - begin_ / kSector + 1) * kSector);
  charged +=
      end_ - begin_ < static_cast<int64_t>(figure::kShortRowBytes) ? sectors * figure::kShortRowPenalty : sectors;
  begin_ = end_;
}

double MadCycles(const MadWork& w) {
  const double cube = figure::kMadCube, least = w.scaled ? figure::kMadScaledExtent : 0;
  const double m = std::max(CeilTo(static_cast<double>(w.m), cube), least),
               n = std::max(CeilTo(static_cast<double>(w.n), cube), least);
  // 32 bytes of a row along k are one step.
  const double steps = std::ceil(static_cast<double>(w.k * w.element_bits) / 256);
  const double head = w.whole_f32 ? figure::kMadF32Head : w.scaled ? figure::kMadScaledHead : figure::kMadHead;
  return m * n / (cube * cube) * steps * (w.whole_f32 ? figure::kMadF32Slowdown : 1) + head;
}

void ChargeCommand(CommandKind kind, CommandAccesses* a, const CommandWork& work, TimingTask* task) {
  double cost = 0, latency = 0, rate = 0;
  a->gm_read.Close();
  a->gm_written.Close();
  const auto width = [](const CommandAccesses::Rows& rows) {
    return static_cast<double>(rows.bytes) / static_cast<double>(std::max<int64_t>(1, rows.rows));
  };
  switch (kind) {
    case CommandKind::kSync:
    case CommandKind::kVector:
      return;
    case CommandKind::kGmUb:
      if (a->gm_read.rows == 0) break;
      cost = figure::kGmUbInterval;
      latency = a->gm_read.rows > 1 ? figure::kGmUbStridedLatency : figure::kGmUbLatency;
      rate = a->gm_read.rows > 1 ? LoadRate(width(a->gm_read)) : figure::kGmUbRate;
      break;
    case CommandKind::kUbGm:
      if (a->gm_written.rows == 0) break;
      cost = figure::kUbGmInterval;
      latency =
          a->gm_written.rows > 1 && width(a->gm_written) < 128 ? figure::kUbGmNarrowLatency : figure::kUbGmLatency;
      rate = a->gm_written.rows > 1 ? StoreRate(width(a->gm_written)) : figure::kUbGmRate;
      break;
    case CommandKind::kGmL1:
      if (a->gm_read.rows == 0) break;
      cost = figure::kGmL1Interval, latency = figure::kGmL1Latency;
      rate = a->gm_read.rows > 1 ? LoadRate(width(a->gm_read)) : figure::kGmUbRate;
      break;
    case CommandKind::kUbL1:
      cost = static_cast<double>(a->Written(Memory::kL1)) /
             UbL1Rate(std::min(width(a->l1_written), width(a->ub_read)), a->l1_written.rows > 1 || a->ub_read.rows > 1);
      latency = figure::kUbL1Latency;
      break;
    case CommandKind::kL1L0:
      cost = static_cast<double>(a->Written(Memory::kL0a) + a->Written(Memory::kL0b)) / figure::kL1L0Rate +
             figure::kL1L0Latency;
      break;
    case CommandKind::kL1Scale:
      cost = static_cast<double>(a->Written(Memory::kL0aScale) + a->Written(Memory::kL0bScale)) / figure::kL1ScaleRate +
             figure::kL1ScaleLatency;
      break;
    case CommandKind::kL1Bias:
      cost = static_cast<double>(a->Read(Memory::kL1)) / figure::kL1ScaleRate + figure::kL1BiasLatency;
      break;
    case CommandKind::kL1Fixpipe:
      cost = static_cast<double>(a->Read(Memory::kL1)) / figure::kL1ScaleRate + figure::kL1FixpipeLatency;
      break;
    case CommandKind::kL1Ub:
      cost = static_cast<double>(a->Read(Memory::kL1)) / figure::kL1UbRate;
      break;
    case CommandKind::kFixpipe: {
      const int64_t ub = a->Written(Memory::kUb0) + a->Written(Memory::kUb1);
      const bool both = a->Written(Memory::kUb0) && a->Written(Memory::kUb1);
      const double bytes = static_cast<double>(ub + a->Written(Memory::kL1) + a->gm_written.bytes);
      const double elements = static_cast<double>(a->Read(Memory::kL0c)) / 4;
      const bool gm = a->gm_written.bytes > 0;
      cost = std::max(bytes / (both ? figure::kFixpipeDualRate : figure::kFixpipeRate),
                      elements / figure::kFixpipeElements) *
                 (work.skips_rows ? figure::kFixpipeSkipSlowdown : 1) +
             figure::kFixpipeHead;
      latency = (gm ? figure::kFixpipeGmLatency : figure::kFixpipeLatency) - figure::kFixpipeHead;
      if (gm) {
        rate = figure::kFixpipeRate;
        a->gm_written.charged = static_cast<double>(a->gm_written.bytes);  // it collects neighbouring rows
      }
      break;
    }
    case CommandKind::kMad:
      if (work.mad.m && work.mad.n && work.mad.k) cost = MadCycles(work.mad);
      break;
    case CommandKind::kMemory: {
      int64_t bytes = 0;
      for (int m = 0; m < static_cast<int>(Memory::kMemories); ++m) bytes += std::max(a->read[m], a->written[m]);
      cost = static_cast<double>(bytes) / figure::kUbUbRate;
      break;
    }
  }
  task->cost = static_cast<float>(cost), task->latency = static_cast<float>(latency);
  task->gm_bytes[0] = static_cast<float>(a->gm_read.charged),
  task->gm_bytes[1] = static_cast<float>(a->gm_written.charged);
  task->gm_rate = static_cast<float>(rate);
}

}  // namespace pto::engine
