package blob

import (
	"encoding/hex"
	"math"
	"time"

	"github.com/loom-bridge/loom-bridge/context/step"
	"github.com/loom-bridge/loom-bridge/memory/kv/wire"
)

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
