// Where the threads of a block meet: barriers and warp intrinsics.

#include "tests/support/cuda_on_cpu/block.h"

namespace cuda_on_cpu {
namespace {

template <typename Visit>
void for_each_lane(uint32_t mask, Visit&& visit) {
  for (; mask != 0; mask &= mask - 1) visit(static_cast<uint32_t>(__builtin_ctz(mask)));
}

bool same(Location a, Location b) {
  return a.line() == b.line() &&
         (a.file_name() == b.file_name() || std::string_view(a.file_name()) == b.file_name());
}

// Whether every lane of the mask waits with the same intrinsic, line and mask.
bool all_came(const Thread* lanes, const Thread& last) {
  for (uint32_t mask = last.offer.mask; mask != 0; mask &= mask - 1) {
    const Thread& other = lanes[__builtin_ctz(mask)];
    if (other.state != State::kAtWarp || other.offer.mask != last.offer.mask ||
        other.offer.finish != last.offer.finish || !same(other.where, last.where)) {
      return false;
    }
  }
  return true;
}

uint64_t meet(const Offer& offer, Location where) {
  Thread& me = *running;
  if ((offer.mask >> me.lane() & 1) == 0) fail("is not in the mask it gives", where);
  me.offer = offer;
  wait(State::kAtWarp, where);
  Thread* const lanes = me.block->warp_of(me);
  if (all_came(lanes, me)) {
    offer.finish(lanes, offer.mask);
    for_each_lane(offer.mask, [&](uint32_t lane) { wake(lanes[lane]); });
  }
  suspend();
  return me.offer.result;
}

// The lane whose value `lane` gets, as CUDA defines it.
uint32_t source_lane(const Offer& offer, uint32_t lane) {
  const uint32_t width = static_cast<uint32_t>(offer.width);
  const uint32_t first = lane & ~(width - 1);
  switch (offer.kind) {
    case Exchange::kIndex:
      return first + (offer.operand & (width - 1));
    case Exchange::kUp:
      return lane < first + offer.operand ? lane : lane - offer.operand;
    case Exchange::kDown:
      return lane + offer.operand >= first + width ? lane : lane + offer.operand;
    case Exchange::kXor:
      return (lane ^ offer.operand) >= first + width ? lane : lane ^ offer.operand;
  }
  return lane;
}

void finish_exchange(Thread* lanes, uint32_t mask) {
  for_each_lane(mask, [&](uint32_t lane) {
    const uint32_t source = source_lane(lanes[lane].offer, lane);
    if ((mask >> source & 1) == 0) {
      fail("takes part in a shuffle that reads lane " + std::to_string(source) +
               ", which is not in the mask",
           lanes[lane].where);
    }
    lanes[lane].offer.result = lanes[source].offer.bits;
  });
}

void finish_ballot(Thread* lanes, uint32_t mask) {
  uint64_t ballots = 0;
  for_each_lane(mask, [&](uint32_t lane) { ballots |= lanes[lane].offer.bits << lane; });
  for_each_lane(mask, [&](uint32_t lane) { lanes[lane].offer.result = ballots; });
}

void finish_sync(Thread* lanes, uint32_t mask) { race::warp_synced(lanes, mask); }

}  // namespace

uint64_t exchange(Exchange kind, uint32_t mask, uint64_t bits, uint32_t operand, int width,
                  Location where) {
  if (width < 1 || width > warpSize || (width & (width - 1)) != 0) {
    fail("gives a shuffle a width that is no power of two up to 32", where);
  }
  return meet({finish_exchange, mask, bits, kind, operand, width}, where);
}

uint32_t ballot(uint32_t mask, bool predicate, Location where) {
  return static_cast<uint32_t>(meet({finish_ballot, mask, predicate}, where));
}

void sync_warp(uint32_t mask, Location where) { meet({finish_sync, mask}, where); }

void sync_block(Location where) {
  wait(State::kAtBarrier, where);
  ++running->block->at_barrier;
  pass_barrier_if_all_came(*running->block);
  suspend();
}

void pass_barrier_if_all_came(Block& block) {
  if (block.alive == 0 || block.at_barrier < block.alive || block.returned > 0) return;
  const Thread* first = nullptr;
  for (const Thread& thread : block.threads) {
    if (thread.state != State::kAtBarrier) continue;
    if (first == nullptr) first = &thread;
    if (!same(thread.where, first->where)) return;  // they never meet: a deadlock, reported as one
  }
  race::block_synced(block);
  block.at_barrier = 0;
  for (Thread& thread : block.threads) {
    if (thread.state == State::kAtBarrier) wake(thread);
  }
}

void leave() { running->leaving = true; }

}  // namespace cuda_on_cpu
