#include "pool.h"

#include <algorithm>
#include <atomic>
#include <chrono>
#include <cstdint>
#include <cstdlib>
#include <mutex>
#include <new>
#include <thread>

#include <pthread.h>
#include <signal.h>

#include "kernel_table.h"
#include "processor.h"

namespace mlxcel {
namespace {

using Clock = std::chrono::steady_clock;

/// How long a thread without work waits awake for the next kernel of a forward pass.
constexpr auto kAwake = std::chrono::microseconds(40);
constexpr int kMaxThreads = 64;

inline void relax() {
#if defined(__x86_64__)
  __builtin_ia32_pause();
#elif defined(__aarch64__)
  asm volatile("yield");
#endif
}

/// Waits awake, for a short time, until the condition holds; returns whether it does.
template <class Condition> bool spin(const Condition &condition) {
  const auto end = Clock::now() + kAwake;
  do {
    for (int i = 0; i < 32; i++) {
      if (condition()) return true;
      relax();
    }
  } while (Clock::now() < end);
  return condition();
}

/// generation (24 bits), number of parts (20), next part (20): claiming a part and checking that it
/// still exists is one step.
constexpr int kCountBits = 20;
constexpr uint64_t kCountMask = (1u << kCountBits) - 1;
constexpr long kMaxParts = kCountMask;

class Pool {
public:
  int threads() const { return threads_.load(std::memory_order_relaxed); }

  void setThreads(int count) {
    const std::lock_guard<std::mutex> lock(busy_);
    count = std::clamp(count, 1, kMaxThreads);
    while (started_ < count - 1) start(started_++);
    threads_.store(count, std::memory_order_relaxed);
  }

  void run(long count, Part part, const void *context) {
    // Another stream has the pool: its kernel uses the cores already.
    std::unique_lock<std::mutex> lock(busy_, std::try_to_lock);
    if (count < 2 || count > kMaxParts || !lock || threads() < 2) {
      for (long i = 0; i < count; i++) part(context, i);
      return;
    }
    part_.store(part, std::memory_order_relaxed);
    context_.store(context, std::memory_order_relaxed);
    done_.store(0, std::memory_order_relaxed);
    generation_++;
    ticket_.store(generation_ << (2 * kCountBits) | static_cast<uint64_t>(count) << kCountBits,
                  std::memory_order_release);
    // Sequentially consistent, as is `asleep_`: either we see the sleeper, or it sees the new call.
    calls_.fetch_add(1);
    if (asleep_.load() > 0) calls_.notify_all();
    work();
    const uint32_t all = static_cast<uint32_t>(count);
    if (spin([&] { return done_.load(std::memory_order_acquire) == all; })) return;
    for (uint32_t done; (done = done_.load(std::memory_order_acquire)) != all;) done_.wait(done);
  }

private:
  /// Takes parts until none is left.
  void work() {
    uint64_t ticket = ticket_.load(std::memory_order_acquire);
    for (;;) {
      const uint64_t count = ticket >> kCountBits & kCountMask;
      const uint64_t next = ticket & kCountMask;
      if (next >= count) return;
      if (!ticket_.compare_exchange_weak(ticket, ticket + 1, std::memory_order_acq_rel)) continue;
      // The kernel cannot end before this part: its fields stay.
      part_.load(std::memory_order_relaxed)(context_.load(std::memory_order_relaxed),
                                            static_cast<long>(next));
      if (done_.fetch_add(1, std::memory_order_acq_rel) + 1 == count) done_.notify_all();
      ticket = ticket_.load(std::memory_order_acquire);
    }
  }

  void live(int index) {
    for (;;) {
      const uint32_t seen = calls_.load();
      if (index + 1 < threads()) {
        work();
        if (spin([&] { return calls_.load(std::memory_order_relaxed) != seen; })) continue;
      }
      asleep_.fetch_add(1);
      calls_.wait(seen);
      asleep_.fetch_sub(1);
    }
  }

  // Signals belong to the threads of the program.
  void start(int index) {
    sigset_t all, before;
    sigfillset(&all);
    pthread_sigmask(SIG_SETMASK, &all, &before);
    std::thread([this, index] { live(index); }).detach();
    pthread_sigmask(SIG_SETMASK, &before, nullptr);
  }

  alignas(64) std::atomic<uint64_t> ticket_{0};
  alignas(64) std::atomic<uint32_t> done_{0};
  alignas(64) std::atomic<uint32_t> calls_{0};
  std::atomic<int> asleep_{0};
  alignas(64) std::atomic<Part> part_{nullptr};
  std::atomic<const void *> context_{nullptr};
  std::atomic<int> threads_{1};
  std::mutex busy_;
  uint64_t generation_ = 0;
  int started_ = 0;
};

/// Never destroyed: its threads live as long as the process.
Pool &pool() {
  static Pool &shared = []() -> Pool & {
    Pool &made = *new Pool;
    made.setThreads(physicalCores());
    return made;
  }();
  return shared;
}

struct Memory {
  float *floats = nullptr;
  size_t size = 0;
  ~Memory() { std::free(floats); }
};

} // namespace

int threads() { return pool().threads(); }
void setThreads(int count) { pool().setThreads(count); }
void runParts(long count, Part part, const void *context) { pool().run(count, part, context); }

float *threadScratch(Scratch user, size_t floats) {
  thread_local Memory memories[2];
  Memory &memory = memories[static_cast<int>(user)];
  if (memory.size < floats) {
    std::free(memory.floats);
    constexpr size_t kAlignment = 64;
    const size_t bytes = (floats * sizeof(float) + kAlignment - 1) / kAlignment * kAlignment;
    memory.floats = static_cast<float *>(std::aligned_alloc(kAlignment, bytes));
    memory.size = memory.floats ? floats : 0;
    if (!memory.floats) throw std::bad_alloc();
  }
  return memory.floats;
}

} // namespace mlxcel
