package blob

import (
	"encoding/hex"
	"math"
	"slices"
	"time"

	"github.com/loom-bridge/loom-bridge/context/step"
	"github.com/loom-bridge/loom-bridge/memory/kv/wire"
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

// Fields of an entry (memory/FORMAT.md). The path it was made with stands in
// the key.
const (
	fieldRef = iota + 1
	fieldStep
	fieldSession
	fieldKind
	fieldCategory
	fieldBytes
	fieldTime
	fieldTTL
	fieldTier
	fieldImportant
	fieldPath
	fieldAlias
	fieldTask
	fieldMedia
	fieldPromoteTime
	fieldArchive
	fieldTag
	fieldArchiveTime
)

func (e Entry) encode(hash []byte, number uint64) []byte {
	dst := make([]byte, 0, 128+len(e.SessionID))
	dst = wire.AppendItem(dst, fieldRef, hash)
	dst = wire.AppendUint(dst, fieldStep, number)
	dst = wire.AppendText(dst, fieldSession, e.SessionID)
	dst = wire.AppendText(dst, fieldKind, e.Kind)
	dst = wire.AppendText(dst, fieldCategory, e.Category)
	dst = wire.AppendUint(dst, fieldBytes, uint64(e.Size))
	dst = wire.AppendTime(dst, fieldTime, e.Time)
	dst = wire.AppendUint(dst, fieldTTL, uint64(e.TTL.Milliseconds()))
	dst = wire.AppendUint(dst, fieldTier, uint64(e.Tier))
	if e.Important {
		dst = wire.AppendUint(dst, fieldImportant, 1)
	}
	if len(e.Aliases) > 0 {
		dst = wire.AppendItem(dst, fieldPath, e.Path)
		for _, alias := range e.Aliases[1:] {
			dst = wire.AppendItem(dst, fieldAlias, alias)
		}
	}
	dst = wire.AppendText(dst, fieldTask, e.TaskID)
	dst = wire.AppendText(dst, fieldMedia, e.MediaType)
	dst = wire.AppendTime(dst, fieldPromoteTime, e.PromoteTime)
	dst = wire.AppendText(dst, fieldArchive, e.Archive.Category)
	for _, tag := range e.Archive.Tags {
		dst = wire.AppendItem(dst, fieldTag, tag)
	}
	return wire.AppendTime(dst, fieldArchiveTime, e.Archive.Time)
}

// decodeEntry reads an entry; home is what its key says.
func decodeEntry(home string, value []byte) (Entry, error) {
	e := Entry{Path: home}
	var aliases []string
	for f, err := range wire.Fields(value) {
		if err != nil {
			return Entry{}, damagedEntry(home)
		}
		if f.Number == fieldAlias {
			aliases = append(aliases, string(f.Bytes))
			continue
		}
		e.set(f)
	}
	if len(e.Ref) != 2*len(Stored{}.SHA256) || e.Size < 0 || e.TTL < 0 {
		return Entry{}, damagedEntry(home)
	}
	if e.Path != home {
		e.Aliases = append([]string{home}, aliases...)
	}
	return e, nil
}

// maxTTL keeps a stored TTL within a Duration.
const maxTTL = math.MaxInt64 / uint64(time.Millisecond)

func (e *Entry) set(f wire.Field) {
	if text := e.text(f.Number); text != nil {
		*text = string(f.Bytes)
		return
	}
	switch f.Number {
	case fieldRef:
		e.Ref = hex.EncodeToString(f.Bytes)
	case fieldStep:
		e.StepID = step.ID(f.Value)
	case fieldBytes:
		e.Size = int64(f.Value)
	case fieldTime:
		e.Time = f.Time()
	case fieldTTL:
		e.TTL = time.Duration(min(f.Value, maxTTL)) * time.Millisecond
	case fieldTier:
		e.Tier = Tier(min(f.Value, uint64(LongTerm)))
	case fieldImportant:
		e.Important = f.Value != 0
	case fieldPromoteTime:
		e.PromoteTime = f.Time()
	case fieldTag:
		e.Archive.Tags = append(e.Archive.Tags, string(f.Bytes))
	case fieldArchiveTime:
		e.Archive.Time = f.Time()
	}
}

// text is where the text of a field belongs; nil for all other fields.
func (e *Entry) text(number int) *string {
	switch number {
	case fieldSession:
		return &e.SessionID
	case fieldKind:
		return &e.Kind
	case fieldCategory:
		return &e.Category
	case fieldPath:
		return &e.Path
	case fieldTask:
		return &e.TaskID
	case fieldMedia:
		return &e.MediaType
	case fieldArchive:
		return &e.Archive.Category
	}
	return nil
}

func damagedEntry(home string) error {
	return &DamagedError{Ref: home, Chunk: WholeBlob, Problem: "its entry can't be read"}
}
