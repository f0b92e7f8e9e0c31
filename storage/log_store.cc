#include "storage/log_store.h"

#include <algorithm>
#include <cstring>

#include "runtime/base/salt.h"

namespace rowtide::storage {

uint32_t queue_depth(const ColdStoreOptions& options, const Layout& layout) {
  return options.reads_in_flight + layout.chunk_count + BlockIo::kMostRanges + 1 +
         static_cast<uint32_t>(options.directories.size());
}

std::vector<MemoryLine> predict_memory(const ColdStoreOptions& options, const Layout& layout,
                                       int domain_bits) {
  return {
      {"index", IndexShape::of(domain_bits, layout.rows, layout.record_count()).bytes()},
      {"liveness", Segments::liveness_bytes(layout)},
      {"segments", Segments::table_bytes(layout)},
      {"write buffer", WriteBuffer::predict(layout)},
      {"footers", Log::predict(layout)},
      {"read buffers", Reads::predict(layout, options.reads_in_flight)},
      {"cleaning", Cleaner::predict(layout)},
      {"scans", BlockIo::predict(layout)},
  };
}

LogStore::LogStore(ColdStoreOptions options, FileSystem* files, std::unique_ptr<FileSystem> owned)
    : options_(std::move(options)),
      owned_files_(std::move(owned)),
      store_files_(files, &options_),
      domain_(options_.tables) {}

LogStore::~LogStore() { router_.reset(); }

Result<std::unique_ptr<ColdStore>> LogStore::open(ColdStoreOptions options, StoreBackend backend,
                                                  std::unique_ptr<FileSystem> owned) {
  std::unique_ptr<LogStore> store(
      new LogStore(std::move(options), backend.files, std::move(owned)));
  ROWTIDE_TRY(store->start(backend));
  return std::unique_ptr<ColdStore>(std::move(store));
}

Status LogStore::start(const StoreBackend& backend) {
  auto unmade = Layout::of(options_, 0);  // bad options must not make directories
  if (!unmade.ok()) return unmade.status();
  ROWTIDE_TRY(store_files_.open());
  auto layout = Layout::of(options_, store_files_.segment_bytes());
  if (!layout.ok()) return layout.status();
  layout_ = std::move(*layout);
  ROWTIDE_TRY(make_parts(backend));
  ROWTIDE_TRY(recover());
  ROWTIDE_TRY(load_commit());
  if (!options_.read_only) {
    start_log();
    // Recovery has read, and freed segments by, what may not be durable yet.
    ROWTIDE_TRY(sync_all());
    store_files_.remove_stale();
  } else {
    reads_->expect_moves();
    store_files_.end_scan();
  }
  return {};
}

// Takes the value of a Result out into a pointer, or returns its error.
template <typename T>
Status take(Result<T> result, std::unique_ptr<T>* out) {
  if (!result.ok()) return result.status();
  *out = std::make_unique<T>(std::move(*result));
  return {};
}
template <typename T>
Status take(Result<std::unique_ptr<T>> result, std::unique_ptr<T>* out) {
  if (!result.ok()) return result.status();
  *out = std::move(*result);
  return {};
}

Status LogStore::make_parts(const StoreBackend& backend) {
  files_ = std::make_unique<LogFiles>(&store_files_.files(), &layout_);
  ROWTIDE_TRY(store_files_.open_logs(layout_.segment_bytes, files_.get()));
  const uint32_t depth = queue_depth(options_, layout_);
  auto queue = backend.make_queue(depth);
  if (!queue.ok()) return queue.status();
  router_ = std::make_unique<IoRouter>(std::move(*queue), depth);
  ROWTIDE_TRY(
      take(Index::create(domain_, layout_.rows, layout_.record_count(), process_salt()), &index_));
  ROWTIDE_TRY(take(Segments::create(&layout_), &segments_));
  ROWTIDE_TRY(take(WriteBuffer::create(&layout_, files_.get(), router_.get()), &buffer_));
  log_ = std::make_unique<Log>(&layout_, files_.get(), segments_.get(), buffer_.get());
  ROWTIDE_TRY(take(Reads::create({&layout_, files_.get(), &domain_, index_.get(), segments_.get(),
                                  buffer_.get(), router_.get()},
                                 options_.reads_in_flight),
                   &reads_));
  syncer_ = std::make_unique<Syncer>(log_.get(), buffer_.get(), files_.get(), router_.get(),
                                     store_files_.direct());
  ROWTIDE_TRY(take(Cleaner::create({&layout_, files_.get(), &domain_, index_.get(), segments_.get(),
                                    buffer_.get(), log_.get(), syncer_.get(), router_.get()}),
                   &cleaner_));
  return take(BlockIo::create(&layout_, files_.get(), router_.get()), &blocks_);
}

// Which segments have bytes on the disk.
Status LogStore::find_allocated() {
  for (uint32_t d = 0, first = 0; d < files_->count(); first += layout_.segments[d++]) {
    const LogFile& log = (*files_)[d];
    auto size = store_files_.files().size(log.file);
    if (!size.ok()) return size.status();
    const auto& committed = store_files_.manifest().log_bytes;
    if (d < committed.size() && *size < committed[d]) {
      return {Code::kCorrupt, log.path + " has " + std::to_string(*size) + " bytes, the commit " +
                                  std::to_string(committed[d])};
    }
    const uint64_t segments = *size > kPageBytes ? (*size - kPageBytes) / layout_.segment_bytes : 0;
    if (segments > layout_.segments[d]) {
      return {Code::kNoSpace, log.path + " takes " + std::to_string(*size) +
                                  " bytes, the budget is " + std::to_string(log.bytes)};
    }
    for (uint32_t i = 0; i < segments; ++i) (*segments_)[first + i].allocated = true;
  }
  return {};
}

Status LogStore::recover() {
  ROWTIDE_TRY(find_allocated());
  Recovery recovery({&layout_, files_.get(), &domain_, index_.get(), segments_.get(), blocks_.get(),
                     &store_files_.manifest()});
  std::vector<uint32_t> kept;
  for (const KeptCommit& commit : store_files_.manifest().kept) {
    if (options_.read_only ? commit.epoch == store_files_.view() : true) {
      kept.push_back(commit.epoch);
    }
  }
  ROWTIDE_TRY(recovery.run(store_files_.view(), kept, !options_.read_only));
  Manifest& manifest = store_files_.manifest();
  newest_epoch_ = recovery.greatest_epoch();
  next_epoch_ = newest_epoch_ + 1;
  if (options_.read_only) return {};
  if (newest_epoch_ > manifest.epoch) manifest.dead.push_back({manifest.epoch + 1, newest_epoch_});
  manifest.sequence = recovery.greatest_sequence() + 1;
  hold_open(manifest);
  return {};
}

// The segments that a manifest lists as open are not freed while it counts.
void LogStore::hold_open(const Manifest& manifest) {
  for (const OpenSegment& open : manifest.open) {
    for (uint32_t n = 0; n < segments_->count(); ++n) {
      if (layout_.place_of(n) != open.place) continue;
      held_.push_back(n);
      (*segments_)[n].held = true;
    }
  }
}

void LogStore::start_log() {
  const Manifest& manifest = store_files_.manifest();
  log_->start(manifest.store, manifest.sequence, store_files_.files().random_number());
  count_commit_bytes();
  // Holes that an earlier life made are part of the files: given back once more, they count again.
  (void)log_->make_commit_room(0);
}

void LogStore::count_commit_bytes() {
  const Manifest& manifest = store_files_.manifest();
  const KeptCommit* last = manifest.find(manifest.epoch);
  log_->set_commit_bytes(manifest.arrays_bytes() + encode_manifest(manifest).size(),
                         last != nullptr ? last->arrays_bytes : 0);
}

Status LogStore::load_commit() {
  const KeptCommit* commit = store_files_.manifest().find(store_files_.view());
  if (commit == nullptr) return {};
  auto arrays = store_files_.arrays_of(*commit);
  if (!arrays.ok()) return arrays.status();
  last_commit_ = {commit->epoch, commit->meta, std::move(*arrays)};
  return {};
}

Status LogStore::check_append(Key key, uint32_t epoch, uint64_t there) const {
  const auto row = [key] {
    return "table " + std::to_string(table_of(key)) + ", row " + std::to_string(row_of(key));
  };
  const uint32_t least = unsure_         ? unsure_->second.epoch + 1
                         : pending_ != 0 ? pending_
                                         : last_commit_.epoch + 1;
  if (epoch < least || epoch > kMostEpoch) {
    return {Code::kInvalid, row() + ": epoch " + std::to_string(epoch) + " is not in " +
                                std::to_string(least) + " .. " + std::to_string(kMostEpoch)};
  }
  if (there == kNoRecord) {
    if (index_->rows() < layout_.rows) return {};
    return {Code::kNoSpace,
            row() + ": the index holds " + std::to_string(layout_.rows) + " rows and is full"};
  }
  const int bit = epoch == pending_ ? segments_->commits().bit_of(pending_) : -1;
  if (bit < 0 || (segments_->byte(there) >> bit & 1) == 0) return {};
  return {Code::kInvalid,
          row() + ": epoch " + std::to_string(epoch) + " comes after a later one of the same row"};
}

Result<bool> LogStore::append(uint32_t type, Key key, uint32_t epoch,
                              std::span<const std::byte> weights,
                              std::span<const std::byte> state) {
  ROWTIDE_CHECK(!options_.read_only && type < layout_.types.size() &&
                weights.size() + state.size() == layout_.types[type].payload_bytes);
  if (!domain_.contains(key)) {
    return {Code::kInvalid, "no table given holds table " + std::to_string(table_of(key)) +
                                ", row " + std::to_string(row_of(key))};
  }
  const uint64_t number = domain_.number(key), there = index_->find(number);
  ROWTIDE_TRY(check_append(key, epoch, there));
  const RecordName name{.key = key, .epoch = epoch, .flags = kValue};
  const Log::Room room = log_->room(type, name, Log::Opening::kBeyondReserve);
  if (room == Log::Room::kNoSegment && cleaner_->stuck()) return full();
  if (room != Log::Room::kThere) return false;
  const uint64_t record = log_->next_record(type);
  if (!index_->set(number, record)) return {Code::kNoSpace, "the index found no place for a row"};
  log_->write(type, name, weights, state);
  segments_->add_newest(record, epoch);
  if (there != kNoRecord) segments_->supersede(there, epoch);
  newest_epoch_ = std::max(newest_epoch_, epoch);
  cleaner_->begin_anew();
  ++records_appended_;
  bytes_appended_ += layout_.types[type].bytes;
  return true;
}

// Nothing can be cleaned: says what fills the log.
Status LogStore::full() const {
  const uint64_t live = segments_->live_bytes(), newest = segments_->newest_bytes();
  std::string what = "the log is full: a segment of " + std::to_string(layout_.segment_bytes) +
                     " bytes is needed, " + std::to_string(log_->free_count()) + " of " +
                     std::to_string(layout_.segment_count) + " are free and " +
                     std::to_string(log_->reserve()) + " are kept for cleaning; " +
                     std::to_string(newest) + " of " + std::to_string(log_->bytes_budget()) +
                     " bytes are newest rows, " + std::to_string(live - newest) +
                     " more are held by commits";
  for (const KeptCommit& commit : store_files_.manifest().kept) {
    what += " " + std::to_string(commit.epoch);
  }
  if (pending_ != 0) what += " and the pending " + std::to_string(pending_);
  const Status& growth = log_->growth();
  if (growth.ok()) return {Code::kNoSpace, what};
  const bool disk_full = growth.code() == Code::kNoSpace;
  what += (disk_full ? "; the disk is full: " : "; the disk fails: ") + growth.message();
  return {growth.code(), what};
}

bool LogStore::contains(Key key) const {
  return domain_.contains(key) && index_->find(domain_.number(key)) != kNoRecord;
}

void LogStore::prefetch(Key key) const {
  if (domain_.contains(key)) index_->prefetch(domain_.number(key));
}

ColdStore::Read LogStore::start_read(Key key, std::byte* out, uint64_t ticket) {
  if (!domain_.contains(key)) return Read::kAbsent;
  const uint64_t record = index_->find(domain_.number(key));
  return record == kNoRecord ? Read::kAbsent : reads_->start(record, key, out, ticket);
}

void LogStore::step() {
  if (options_.read_only) {
    if (reads_->any_moved()) look_up_moved();
  } else {
    cleaner_->step(newest_epoch_, !cleaner_->any_emptied() || !store_files_.being_scanned());
    syncer_->step();
  }
  reads_->step();
}

void LogStore::poll(bool wait, std::vector<Done>& done) {
  buffer_->retry();
  step();
  router_->poll(wait && !reads_->any_ended());
  step();
  reads_->take(done);
  log_->try_disk_again();  // after the cleaner has seen what the log was refused
}

Status LogStore::begin_commit(uint32_t epoch) {
  ROWTIDE_TRY(settle());
  ROWTIDE_CHECK(!options_.read_only && epoch > last_commit_.epoch && epoch >= newest_epoch_ &&
                epoch <= kMostEpoch);
  KeptCommits& commits = segments_->commits();
  if (pending_ != 0) segments_->drop_commit(commits.bit_of(pending_));
  ROWTIDE_CHECK(commits.add(epoch) >= 0);
  pending_ = epoch;
  return {};
}

Status LogStore::take_write_error() {
  Status status = buffer_->take_error();
  if (status.ok()) status = log_->take_error();
  if (status.ok()) status = cleaner_->take_error();
  if (status.ok()) status = syncer_->take_error();
  return status;
}

ColdStoreStats LogStore::stats() const {
  ColdStoreStats stats;
  stats.records_appended = records_appended_;
  stats.bytes_appended = bytes_appended_;
  stats.records_cleaned = cleaner_->records_copied();
  stats.bytes_cleaned = cleaner_->bytes_copied();
  stats.reads = reads_->device_reads();
  stats.read_bytes = reads_->device_bytes();
  stats.reads_joined = reads_->joined();
  stats.reads_buffered = reads_->buffered();
  stats.rows = index_->rows();
  stats.table_rows = index_->table_rows();
  stats.bytes_used = log_->bytes_used();
  stats.bytes_budget = log_->bytes_budget();
  stats.ddr_reserved = index_->reserved_bytes() + segments_->reserved_bytes() +
                       buffer_->reserved_bytes() + log_->reserved_bytes() +
                       reads_->reserved_bytes() + cleaner_->reserved_bytes() +
                       blocks_->reserved_bytes();
  stats.ddr_used = stats.ddr_reserved - buffer_->reserved_bytes() + buffer_->used_bytes();
  stats.commits = commits_;
  return stats;
}

}  // namespace rowtide::storage
