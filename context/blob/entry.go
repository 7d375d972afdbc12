package blob

import (
	"cmp"
	"encoding/hex"
	"math"
	"slices"
	"time"

	"github.com/loom-bridge/loom-bridge/context/step"
	"github.com/loom-bridge/loom-bridge/memory/kv/wire"
	storev1 "github.com/loom-bridge/loom-bridge/proto/gen/store/v1"
)

// Archived describes a blob in the archive.
type Archived struct {
	// Category is reports, datasets, config or general; empty outside the
	// archive.
	Category string
	// Tags are the owner's own words for it, in the order given.
	Tags []string
	// Time is when it was archived.
	Time time.Time
}

// Entry is a path that leads to a blob.
type Entry struct {
	// Path is where readers find it, such as "workspace/outputs/read_001.txt".
	Path string
	// Aliases are the paths it had before, the first one first. They lead to it,
	// too.
	Aliases []string
	// Ref is the blob's hash in hex.
	Ref string
	// Owner is the owner of its scope.
	Owner string
	// StepID is the step that made it, or empty.
	StepID string
	// SessionID is the session it was made in, or empty.
	SessionID string
	// TaskID is the task it was made for, or empty.
	TaskID string
	// Kind is text, json, log, image, audio or binary.
	Kind string
	// MediaType is the content's format, such as "image/png", or empty if it is not
	// known.
	MediaType string
	// Category is the sort of call that made it; it decides how long the blob is kept.
	Category string
	// Size is the number of bytes.
	Size int64
	// Time is when it was stored.
	Time time.Time
	// TTL is how long it stays, in whole milliseconds; zero: for ever.
	TTL time.Duration
	// Tier says for how long it is worth keeping, PromoteTime when that was raised.
	Tier        Tier
	PromoteTime time.Time
	// Important keeps it after it has expired.
	Important bool
	// Archive describes it in the archive.
	Archive Archived
	// Expired says that its TTL was over when this entry was read. Garbage collection
	// deletes it once nothing refers to it.
	Expired bool
}

// ExpireTime is when the blob expires, and false if it never does.
func (e Entry) ExpireTime() (time.Time, bool) {
	if e.TTL <= 0 || e.Tier == LongTerm {
		return time.Time{}, false
	}
	from := e.Time
	if e.PromoteTime.After(from) {
		from = e.PromoteTime
	}
	return from.Add(e.TTL), true
}

// Home is the path under which the entry is stored: the one it was made with.
func (e Entry) Home() string {
	if len(e.Aliases) > 0 {
		return e.Aliases[0]
	}
	return e.Path
}

// Paths are all that lead to it, the one it was made with first.
func (e Entry) Paths() []string {
	if len(e.Aliases) == 0 {
		return []string{e.Path}
	}
	return append(slices.Clone(e.Aliases), e.Path)
}

// seen fills in what depends on who reads the entry, and when.
func (e Entry) seen(owner string, now time.Time) Entry {
	e.Owner = owner
	expires, ever := e.ExpireTime()
	e.Expired = ever && !now.Before(expires)
	return e
}

func (e Entry) encode(hash []byte, number uint64) []byte {
	m := &storev1.BlobEntry{
		Sha256: append([]byte{}, hash...), Step: number, Session: e.SessionID, Kind: e.Kind, Category: e.Category, Bytes: uint64(e.Size),
		Time: wire.Micros(e.Time), Ttl: uint64(e.TTL.Milliseconds()), Tier: uint64(e.Tier), Important: e.Important,
		Task: e.TaskID, Format: e.MediaType, Promoted: wire.Micros(e.PromoteTime),
		Archive: e.Archive.Category, Tags: e.Archive.Tags, Archived: wire.Micros(e.Archive.Time),
	}
	if len(e.Aliases) > 0 {
		m.Path, m.EarlierPaths = e.Path, e.Aliases[1:]
	}
	return wire.Marshal(m)
}

// maxTTL keeps a stored TTL within a Duration.
const maxTTL = math.MaxInt64 / uint64(time.Millisecond)

// decodeEntry reads an entry; home is what its key says.
func decodeEntry(home string, value []byte) (Entry, error) {
	var m storev1.BlobEntry
	if wire.Unmarshal(value, &m) != nil || len(m.Sha256) != len(Stored{}.SHA256) || int64(m.Bytes) < 0 {
		return Entry{}, damagedEntry(home)
	}
	e := Entry{
		Path: cmp.Or(m.Path, home), Ref: hex.EncodeToString(m.Sha256), SessionID: m.Session, Kind: m.Kind, Category: m.Category, Size: int64(m.Bytes),
		Time: wire.TimeOf(m.Time), TTL: time.Duration(min(m.Ttl, maxTTL)) * time.Millisecond, Tier: Tier(min(m.Tier, uint64(LongTerm))), Important: m.Important,
		TaskID: m.Task, MediaType: m.Format, PromoteTime: wire.TimeOf(m.Promoted),
		Archive: Archived{Category: m.Archive, Tags: m.Tags, Time: wire.TimeOf(m.Archived)},
	}
	if m.Step != 0 {
		e.StepID = step.ID(m.Step)
	}
	if e.Path != home {
		e.Aliases = append([]string{home}, m.EarlierPaths...)
	}
	return e, nil
}

func damagedEntry(home string) error {
	return &DamagedError{Ref: home, Chunk: WholeBlob, Problem: "its entry can't be read"}
}
