#include "processor.h"

#include <algorithm>
#include <atomic>
#include <cstring>
#include <fstream>
#include <set>
#include <string>
#include <thread>

#if defined(__linux__)
#include <sched.h>
#elif defined(__APPLE__)
#include <sys/sysctl.h>
#endif

#include "kernel_table.h"

namespace mlxcel {

int physicalCores() {
#if defined(__linux__)
  cpu_set_t allowed;
  CPU_ZERO(&allowed);
  if (sched_getaffinity(0, sizeof(allowed), &allowed) == 0) {
    std::set<std::string> cores;
    for (int cpu = 0; cpu < CPU_SETSIZE; cpu++) {
      if (!CPU_ISSET(cpu, &allowed)) continue;
      std::ifstream siblings("/sys/devices/system/cpu/cpu" + std::to_string(cpu) +
                             "/topology/thread_siblings_list");
      std::string list;
      if (!std::getline(siblings, list)) list = std::to_string(cpu);
      cores.insert(list);
    }
    if (!cores.empty()) return static_cast<int>(cores.size());
  }
#elif defined(__APPLE__)
  int fast = 0;
  size_t size = sizeof(fast);
  if (sysctlbyname("hw.perflevel0.physicalcpu", &fast, &size, nullptr, 0) == 0 && fast > 0)
    return fast;
#endif
  return static_cast<int>(std::max(1u, std::thread::hardware_concurrency()));
}

namespace {

bool supported(const KernelTable &table) {
#if defined(__x86_64__)
  __builtin_cpu_init();
  const bool avx512 = __builtin_cpu_supports("avx512f") && __builtin_cpu_supports("avx512vl") &&
                      __builtin_cpu_supports("avx512dq") && __builtin_cpu_supports("avx512bw");
  if (&table == &avx512Kernels) return avx512;
  if (&table == &avx512Bf16Kernels) return avx512 && __builtin_cpu_supports("avx512bf16");
  if (&table == &avx2Kernels)
    return __builtin_cpu_supports("avx2") && __builtin_cpu_supports("fma");
#endif
  return &table == &baselineKernels;
}

const KernelTable *const tables[] = {
#if defined(__x86_64__)
    &avx512Kernels, &avx2Kernels,
#endif
    &baselineKernels};

const KernelTable *best() {
  for (const KernelTable *table : tables)
    if (supported(*table)) return table;
  return &baselineKernels;
}

std::atomic<const KernelTable *> &chosen() {
  static std::atomic<const KernelTable *> table{best()};
  return table;
}

} // namespace

const KernelTable &kernels() { return *chosen().load(std::memory_order_relaxed); }

bool useInstructionSet(const char *name) {
  for (const KernelTable *table : tables) {
    if (std::strcmp(table->name, name) != 0 || !supported(*table)) continue;
    chosen().store(table);
    return true;
  }
  return false;
}

bool useBf16Weights() {
#if defined(__x86_64__)
  if (supported(avx512Bf16Kernels)) {
    chosen().store(&avx512Bf16Kernels);
    return true;
  }
#endif
  return false;
}

} // namespace mlxcel
