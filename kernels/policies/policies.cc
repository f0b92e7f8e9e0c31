#include <algorithm>
#include <array>

#include "kernels/policies/clock.h"
#include "kernels/policies/lfu.h"
#include "kernels/policies/lookahead.h"
#include "kernels/policies/lru.h"
#include "kernels/policies/policy.h"

namespace rowtide {
namespace {

// Turns a policy file into functions over a directory.
template <typename P>
constexpr Policy make_policy(std::string_view name) {
  static_assert(P::kSetWords <= kMaxSetWords);
  return {
      .name = name,
      .set_words = P::kSetWords,
      .foresees = P::kForesees,
      .insert = [](const DirectoryView& view, Slot slot,
                   const Touch& use) { touch<P>(view, slot, use, P::insert); },
      .hit = [](const DirectoryView& view, Slot slot,
                const Touch& use) { touch<P>(view, slot, use, P::hit); },
      .foresee = [](const DirectoryView& view, Slot slot,
                    uint32_t step) { P::foresee(view.words[slot], step); },
      .victim = evict<P>,
      .age =
          [](const DirectoryView& view, uint32_t by) {
            for (uint32_t set = 0; set < view.sets; ++set) age_set<P>(view, set, by);
          },
      .resumed = P::resumed,
  };
}

// The one table of policies, in alphabetical order.
constexpr std::array kPolicies = {
    make_policy<Clock>("clock"),
    make_policy<Lfu>("lfu"),
    make_policy<Lookahead>("lookahead"),
    make_policy<Lru>("lru"),
};

constexpr auto kNames = [] {
  std::array<std::string_view, kPolicies.size()> names;
  std::ranges::transform(kPolicies, names.begin(), &Policy::name);
  return names;
}();
static_assert(std::ranges::is_sorted(kNames));

}  // namespace

const Policy* find_policy(std::string_view name) {
  const auto found = std::ranges::find(kPolicies, name, &Policy::name);
  return found == kPolicies.end() ? nullptr : &*found;
}

std::span<const std::string_view> policy_names() { return kNames; }

}  // namespace rowtide
