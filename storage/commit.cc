// Commits of the LogStore: sync everything, write the arrays, replace the manifest.

#include <algorithm>

#include "storage/log_store.h"

namespace rowtide::storage {
namespace {

constexpr uint64_t kMostFailures = 3;  // of writes or syncs within one commit
constexpr size_t kMostKeptBefore = 5;  // commits beside the new one and the next one pending

bool same(const CommitContent& a, const CommitContent& b) {
  const auto equal = [](const NamedArray& x, const NamedArray& y) {
    return x.name == y.name && x.dtype == y.dtype && x.shape == y.shape && x.bytes == y.bytes;
  };
  return a.meta == b.meta &&
         std::equal(a.arrays.begin(), a.arrays.end(), b.arrays.begin(), b.arrays.end(), equal);
}

}  // namespace

// Waits until all that was appended is on the disk.  The cleaner pauses: what it would append now
// the manifest could not promise.
Status LogStore::sync_all() {
  if (syncer_->broken()) return syncer_->last_error();
  const uint64_t number = syncer_->next();
  const uint64_t writes = buffer_->failures(), syncs = syncer_->failures();
  syncer_->request();
  while (syncer_->completed() < number) {
    syncer_->step();
    router_->poll(true);
    syncer_->step();
    if (syncer_->failures() > syncs) return syncer_->last_error();
    if (buffer_->failures() >= writes + kMostFailures) return buffer_->last_error();
    buffer_->retry();
  }
  return {};
}

// The commits to keep once `epoch` is one: the last one and those that readers pin.
std::vector<uint32_t> LogStore::kept_after(uint32_t epoch) {
  std::vector<uint32_t> kept;
  for (const KeptCommit& commit : store_files_.manifest().kept) {
    if (commit.epoch == last_commit_.epoch || store_files_.pinned(commit.epoch)) {
      kept.push_back(commit.epoch);
    }
  }
  kept.push_back(epoch);
  return kept;
}

// The commit that has these arrays already, or 0.
uint32_t LogStore::epoch_with(const ArraysFile& file) {
  const KeptCommit* last = store_files_.manifest().find(last_commit_.epoch);
  const bool same =
      last != nullptr && last->arrays_bytes == file.bytes && last->arrays_checksum == file.checksum;
  return same ? last->arrays_epoch : 0;
}

// Has the cleaner free segments until the files of a commit find room: once the log is synced it
// pauses.
Status LogStore::clean_for_commit(const CommitContent& content, const ArraysFile& file) {
  const uint64_t arrays = epoch_with(file) != 0 ? 0 : file.bytes;
  const uint64_t manifest = encode_manifest(store_files_.manifest()).size() + kPageBytes;
  const uint64_t writes = buffer_->failures(), syncs = syncer_->failures();
  cleaner_->begin_anew();
  for (;;) {
    Status status = log_->make_commit_room(arrays + manifest + content.meta.size());
    if (status.code() != Code::kNoSpace || cleaner_->stuck()) return status;
    cleaner_->want_more();
    step();
    router_->poll(true);
    if (syncer_->failures() > syncs) return syncer_->last_error();
    if (buffer_->failures() >= writes + kMostFailures) return buffer_->last_error();
    buffer_->retry();
  }
}

// Writes the arrays, unless the last commit has the same.
Result<KeptCommit> LogStore::write_arrays(const CommitContent& content, const ArraysFile& file) {
  KeptCommit commit{.epoch = content.epoch, .meta = content.meta};
  if (content.arrays.empty()) return commit;
  commit.arrays_bytes = file.bytes;
  commit.arrays_checksum = file.checksum;
  commit.arrays_epoch = epoch_with(file);
  if (commit.arrays_epoch != 0) return commit;
  commit.arrays_epoch = content.epoch;
  ROWTIDE_TRY(log_->make_commit_room(file.bytes));
  if (Status status = store_files_.write_arrays(content.epoch, file); !status.ok()) {
    store_files_.remove_stale();  // a full disk needs the room of what was begun
    return status;
  }
  log_->set_commit_bytes(log_->commit_bytes() + file.bytes, log_->next_arrays_bytes());
  return commit;
}

// Fills in what the manifest says of the log, and makes it the one on the disk.
Status LogStore::write_manifest(Manifest* next) {
  next->payload_bytes = options_.payload_bytes;
  next->sequence = log_->sequence();
  next->rows = index_->rows();
  next->open.clear();
  for (uint32_t type = 0; type < layout_.types.size(); ++type) {
    const Log::Open open = log_->open_segment(type);
    if (open.segment == kNoSegment) continue;
    next->open.push_back({layout_.place_of(open.segment), (*segments_)[open.segment].sequence,
                          open.slots, open.records});
  }
  next->log_bytes.clear();
  for (uint32_t d = 0; d < files_->count(); ++d) {
    auto size = store_files_.files().size((*files_)[d].file);
    if (!size.ok()) return size.status();
    next->log_bytes.push_back(*size);
  }
  const std::vector<std::byte> bytes = encode_manifest(*next);
  ROWTIDE_TRY(log_->make_commit_room(bytes.size()));
  return store_files_.write_manifest(bytes);
}

Status LogStore::too_many_pins(const std::vector<uint32_t>& kept) const {
  std::string pins;
  for (uint32_t epoch : kept) pins += epoch < last_commit_.epoch ? " " + std::to_string(epoch) : "";
  return {Code::kNoSpace, "too many commits are in use by readers:" + pins};
}

Status LogStore::commit(const CommitContent& content) {
  if (options_.read_only) return {Code::kInvalid, "a store opened read-only cannot commit"};
  const bool again = unsure_ && unsure_->second.epoch == content.epoch;
  ROWTIDE_TRY(settle());
  if (again && last_commit_.epoch == content.epoch && same(last_commit_, content)) return {};
  const bool possible = content.epoch > last_commit_.epoch && content.epoch <= kMostEpoch &&
                        (content.epoch == pending_ || content.epoch >= newest_epoch_);
  if (!possible) {
    return {Code::kInvalid, "commit " + std::to_string(content.epoch) + " cannot follow " +
                                std::to_string(last_commit_.epoch) + " with rows of epoch " +
                                std::to_string(newest_epoch_)};
  }
  if (pending_ != content.epoch) ROWTIDE_TRY(begin_commit(content.epoch));
  const std::vector<uint32_t> soon = kept_after(content.epoch);
  if (soon.size() > kMostKeptBefore + 1) return too_many_pins(soon);
  const ArraysFile file = encode_arrays(content.arrays);
  const Status room = clean_for_commit(content, file);
  cleaner_->want_more(false);
  ROWTIDE_TRY(room);
  ROWTIDE_TRY(sync_all());
  auto commit = write_arrays(content, file);
  if (!commit.ok()) return commit.status();
  const std::vector<uint32_t> kept = kept_after(content.epoch);  // readers may have come meanwhile
  if (kept.size() > kMostKeptBefore + 1) return too_many_pins(kept);
  Manifest next = store_files_.manifest();
  next.epoch = content.epoch;
  next.kept.push_back(std::move(*commit));
  std::erase_if(next.kept, [&](const KeptCommit& c) {
    return std::find(kept.begin(), kept.end(), c.epoch) == kept.end();
  });
  if (Status status = write_manifest(&next); !status.ok()) {
    // The rename may have reached the disk.  Nothing may be appended under this epoch any more: a
    // crash that returns to it would see what came after the cut.
    hold_open(next);
    unsure_ = {std::move(next), content};
    next_epoch_ = content.epoch + 1;
    return status;
  }
  finish_commit(std::move(next), content);
  return {};
}

// Learns from the disk whether the commit that failed late is there.
Status LogStore::settle() {
  if (!unsure_) return {};
  auto epoch = store_files_.epoch_on_disk();
  if (!epoch.ok()) return epoch.status();
  auto [next, content] = std::move(*unsure_);
  unsure_.reset();
  if (*epoch == content.epoch) {
    finish_commit(std::move(next), content);
    return {};
  }
  for (uint32_t segment : held_) (*segments_)[segment].held = false;
  held_.clear();
  hold_open(store_files_.manifest());
  segments_->drop_commit(segments_->commits().bit_of(content.epoch));
  pending_ = 0;
  cleaner_->begin_anew();
  store_files_.remove_stale();  // or each failed commit would leave its arrays
  count_commit_bytes();
  return {};
}

Status LogStore::save_hints(uint64_t bytes, const std::function<Status(const Append&)>& produce) {
  if (options_.read_only) return {Code::kInvalid, "a store opened read-only saves no hints"};
  ROWTIDE_TRY(log_->make_commit_room(HintsFile::kBeside + bytes));
  return store_files_.hints().write(bytes, produce);
}

void LogStore::take_hints(const std::function<void(std::span<const std::byte>)>& visit) {
  if (!options_.read_only) store_files_.hints().take(visit);
}

// The commit is on the disk: lets go what only older ones needed.
void LogStore::finish_commit(Manifest next, const CommitContent& content) {
  Manifest& manifest = store_files_.manifest();
  for (const KeptCommit& old : manifest.kept) {
    if (next.find(old.epoch) != nullptr) continue;
    if (next.kept.size() <= kMostKeptBefore &&
        store_files_.pinned(old.epoch)) {  // a reader came while the manifest was written
      const auto after = std::ranges::find_if(
          next.kept, [&](const KeptCommit& kept) { return kept.epoch > old.epoch; });
      next.kept.insert(after, old);
    } else {
      segments_->drop_commit(segments_->commits().bit_of(old.epoch));
    }
  }
  manifest = std::move(next);
  for (uint32_t segment : held_) (*segments_)[segment].held = false;
  held_.clear();
  hold_open(manifest);
  cleaner_->begin_anew();
  store_files_.remove_stale();
  count_commit_bytes();
  last_commit_ = content;
  next_epoch_ = std::max(newest_epoch_, content.epoch) + 1;
  pending_ = 0;
  segments_->commit_made();
  ++commits_;
}

// Committing again and again would gain nothing where readers pin what fills the log, or the newest
// rows do: a commit must have something to let go.
bool LogStore::wants_commit(std::span<const uint64_t> owed) const {
  constexpr double kFull = 0.8;  // beyond it the cleaner copies thrice what it gains
  constexpr uint32_t kLeastKept = 32;
  constexpr uint32_t kNameBytes = 9;  // as a rule at most
  uint64_t filled = log_->commit_bytes() + log_->next_arrays_bytes();
  for (uint32_t type = 0; type < owed.size(); ++type) {
    filled += (segments_->live_records(type) + owed[type]) * layout_.types[type].room(kNameBytes);
  }
  const uint32_t busy = log_->reserve() + static_cast<uint32_t>(layout_.types.size());
  const uint64_t room = uint64_t{layout_.segment_count - std::min(busy, layout_.segment_count)} *
                        layout_.segment_bytes;
  return static_cast<double>(filled) > kFull * static_cast<double>(room) &&
         segments_->kept_since_commit() > room / kLeastKept;
}

}  // namespace rowtide::storage
