#include "policies.h"

#include "splitmix.h"

namespace pto::engine {
namespace {

class EagerPolicy final : public DrainPolicy {
 public:
  void AfterIssue(Core& core, Pipe pipe) override {
    // A flag that was set may let another pipe go on.
    if (core.RunPipe(pipe) && !core.QueuesEmpty()) Drain(core);
  }

  bool Drain(Core& core) override {
    bool any = false, progress = true;
    while (progress) {
      progress = false;
      for (int p = 0; p < kPipes; ++p) progress |= core.RunPipe(static_cast<Pipe>(p));
      any |= progress;
    }
    return any;
  }
};

// Commands that a core may have waiting before its scalar unit is held up; bounds the memory of the queues.
constexpr size_t kMostWaiting = 4096;

class LatePolicy final : public DrainPolicy {
 public:
  void AfterIssue(Core& core, Pipe pipe) override {
    while (core.queue(pipe).Size() > kMostWaiting && Drain(core)) {
    }
  }

  // One transfer at most: what waits for it is asked again before the next one.
  bool Drain(Core& core) override {
    bool computed = false;
    for (Pipe p : {kPipeS, kPipeV, kPipeM}) computed |= core.RunPipe(p);
    if (computed) return true;
    for (Pipe p : {kPipeMte1, kPipeMte2, kPipeFix, kPipeMte3}) {
      if (core.RunCommand(p)) return true;
    }
    return false;
  }
};

class RandomPolicy final : public DrainPolicy {
 public:
  void AfterIssue(Core& core, Pipe pipe) override {
    if (core.queue(pipe).Size() > kMostWaiting) {
      Drain(core);
    } else if (Draw(core) % 4 == 0) {
      core.RunCommand(static_cast<Pipe>(Draw(core) % kPipes));
    }
  }

  bool Drain(Core& core) override {
    const int first = static_cast<int>(Draw(core) % kPipes);
    for (int i = 0; i < kPipes; ++i) {
      if (core.RunCommand(static_cast<Pipe>((first + i) % kPipes))) return true;
    }
    return false;
  }

 private:
  static uint64_t Draw(Core& core) { return NextRandom(&core.random); }
};

}  // namespace

std::unique_ptr<DrainPolicy> MakePolicy(const LaunchOptions& options) {
  switch (options.policy) {
    case Policy::kEager:
      return std::make_unique<EagerPolicy>();
    case Policy::kRandom:
      return std::make_unique<RandomPolicy>();
    default:
      return std::make_unique<LatePolicy>();
  }
}

}  // namespace pto::engine
