// What a command of a pipe costs, from what it accessed.
#pragma once

#include "mad_work.h"
#include "timing_places.h"

namespace pto::engine {

// What a command accessed, gathered while it was executed.
struct CommandAccesses {
  int64_t read[static_cast<int>(Memory::kMemories)] = {};     // bytes
  int64_t written[static_cast<int>(Memory::kMemories)] = {};  // bytes

  // GM, in rows: bytes that follow each other.
  struct Rows {
    int64_t bytes = 0, rows = 0;
    double charged = 0;  // bytes of whole sectors, more for rows shorter than a line

    void Add(uint32_t tensor, int64_t offset, int64_t count) {
      if (rows > 0 && tensor == tensor_ && offset == end_) {
        end_ += count;
      } else {
        Close();
        ++rows;
        tensor_ = tensor, begin_ = offset, end_ = offset + count;
      }
      bytes += count;
    }
    void Close();

   private:
    uint32_t tensor_ = 0;
    int64_t begin_ = 0, end_ = 0;
  };
  Rows gm_read, gm_written;
  Rows l1_written, ub_read;  // by mte_ub_l1; tensor 0

  int64_t Read(Memory m) const { return read[static_cast<int>(m)]; }
  int64_t Written(Memory m) const { return written[static_cast<int>(m)]; }
};

// What is known of a command besides.
struct CommandWork {
  MadWork mad;              // of a mad
  bool skips_rows = false;  // a store of L0C, see SkipsRowsOfL0c
};

// Sets the costs of the task.
void ChargeCommand(CommandKind kind, CommandAccesses* accesses, const CommandWork& work, TimingTask* task);

// Cycles of the pipe M.
double MadCycles(const MadWork& work);

}  // namespace pto::engine
