package record

import (
	"encoding/binary"
	"fmt"
	"math"
	"time"

	"github.com/loom-bridge/loom-bridge/memory/kv/wire"
	"github.com/loom-bridge/loom-bridge/memory/writer"
)

// The fields of a stored record. Numbers are never used again (FORMAT.md).
const (
	fieldFormat         = 1
	fieldOrdinal        = 2
	fieldID             = 3
	fieldText           = 4
	fieldKey            = 5
	fieldKind           = 6
	fieldSession        = 7
	fieldAuthor         = 8
	fieldEventTime      = 9
	fieldCreateTime     = 10
	fieldExpireTime     = 11
	fieldMetadata       = 12
	fieldTag            = 13
	fieldImportance     = 14
	fieldSupersedes     = 15
	fieldSupersededBy   = 16
	fieldDerivedFrom    = 17
	fieldOrigin         = 18
	fieldTier           = 19
	fieldEmbedding      = 20
	fieldEmbeddingSpace = 21
	fieldVersion        = 22
	fieldUpdateTime     = 23
	fieldPinned         = 24
	fieldArchived       = 25
	fieldSlidingTTL     = 26
	fieldSupersededTime = 27
	fieldMarked         = 28
	fieldPlace          = 29
	fieldSavedBy        = 30
	fieldFirstVersion   = 31
	fieldRepeats        = 40
	fieldLastRepeatTime = 41
	fieldArchiveTime    = 42
	fieldValidUntil     = 60
	fieldRelated        = 61
	fieldReview         = 200
	fieldWriter         = 201
	fieldImportID       = 202
	fieldImportVersion  = 203
)

// By hand: the generated message takes 1.2 times as long to read and to write (8.4 to 6.9 µs, 4.2 to 3.6 µs).

// recordFormat is the format of the records that this version writes.
const recordFormat = 1

// Encode returns the stored form of a record. Its vector stands
// elsewhere.
func Encode(r Record) []byte {
	r.Embedding = nil
	return EncodeWhole(r)
}

// EncodeWhole returns the form that a record had when its vector stood in it.
func EncodeWhole(r Record) []byte {
	const overhead = 256
	b := make([]byte, 0, len(r.Text)+len(r.Metadata)+4*len(r.Embedding)+overhead)
	b = wire.AppendUint(b, fieldFormat, recordFormat)
	b = wire.AppendUint(b, fieldOrdinal, uint64(r.Document.Ordinal))
	b = wire.AppendText(b, fieldID, r.ID)
	b = wire.AppendText(b, fieldText, r.Text)
	b = wire.AppendText(b, fieldKey, r.Key)
	b = wire.AppendText(b, fieldKind, r.Kind)
	b = wire.AppendText(b, fieldSession, r.SessionID)
	b = wire.AppendText(b, fieldAuthor, r.Author)
	b = appendTime(b, fieldEventTime, r.EventTime)
	b = appendTime(b, fieldCreateTime, r.CreateTime)
	b = appendTime(b, fieldExpireTime, r.ExpireTime)
	b = wire.AppendText(b, fieldMetadata, []byte(r.Metadata))
	for _, tag := range r.Tags {
		b = wire.AppendItem(b, fieldTag, tag)
	}
	b = wire.AppendFixed64(b, fieldImportance, math.Float64bits(r.Importance))
	b = wire.AppendText(b, fieldSupersedes, r.Supersedes)
	b = wire.AppendText(b, fieldSupersededBy, r.SupersededBy)
	for _, id := range r.DerivedFrom {
		b = wire.AppendItem(b, fieldDerivedFrom, id)
	}
	b = wire.AppendUint(b, fieldOrigin, uint64(r.Origin))
	b = wire.AppendUint(b, fieldTier, uint64(r.Tier))
	b = wire.AppendText(b, fieldEmbedding, encodeVector(r.Embedding))
	b = wire.AppendText(b, fieldEmbeddingSpace, r.EmbeddingSpace)
	return appendLife(b, r)
}

// appendLife appends what only some records have: a life behind them.
func appendLife(b []byte, r Record) []byte {
	if r.Version > 1 {
		b = wire.AppendUint(b, fieldVersion, uint64(r.Version))
	}
	b = appendTime(b, fieldUpdateTime, r.UpdateTime)
	b = wire.AppendUint(b, fieldPinned, bit(r.Pinned))
	b = wire.AppendUint(b, fieldArchived, bit(r.Archived))
	b = wire.AppendUint(b, fieldSlidingTTL, uint64(r.SlidingTTL.Microseconds()))
	b = appendTime(b, fieldSupersededTime, r.SupersededTime)
	b = wire.AppendUint(b, fieldMarked, bit(r.Document.Marked))
	b = wire.AppendUint(b, fieldPlace, uint64(r.Document.Place))
	b = wire.AppendText(b, fieldSavedBy, r.SavedBy)
	b = wire.AppendUint(b, fieldFirstVersion, uint64(r.FirstVersion))
	b = wire.AppendUint(b, fieldRepeats, uint64(r.Repeats))
	b = appendTime(b, fieldLastRepeatTime, r.LastRepeatTime)
	b = appendTime(b, fieldArchiveTime, r.ArchiveTime)
	b = appendTime(b, fieldValidUntil, r.ValidUntil)
	b = wire.AppendUint(b, fieldRelated, bit(r.Related))
	b = wire.AppendUint(b, fieldReview, uint64(r.Review))
	b = wire.AppendUint(b, fieldWriter, uint64(r.Writer))
	b = wire.AppendText(b, fieldImportID, r.ImportID)
	return wire.AppendUint(b, fieldImportVersion, uint64(r.ImportVersion))
}

func bit(b bool) uint64 {
	if b {
		return 1
	}
	return 0
}

// AppendSuperseded adds to a stored record by whom and when it was replaced. A
// field that comes later counts, and what this version does not know stays.
func AppendSuperseded(stored []byte, by string, at time.Time) []byte {
	return appendTime(wire.AppendText(stored, fieldSupersededBy, by), fieldSupersededTime, at)
}

// AppendRelated adds to a stored record that it has relations, as AppendSuperseded does.
func AppendRelated(stored []byte) []byte { return wire.AppendUint(stored, fieldRelated, 1) }

// Decode reads a stored record. The result shares no memory with b.
func Decode(b []byte) (Record, error) {
	r := Record{Version: 1}
	format := uint64(0)
	for f, err := range wire.Fields(b) {
		if err != nil {
			return Record{}, fmt.Errorf("%w: record: %w", ErrDamaged, err)
		}
		if f.Number == fieldFormat {
			format = f.Value
			continue
		}
		if err := r.setField(f); err != nil {
			return Record{}, err
		}
	}
	switch {
	case format == 0 || r.ID == "":
		return Record{}, fmt.Errorf("%w: record without format or id", ErrDamaged)
	case format > recordFormat:
		return Record{}, fmt.Errorf("%w: record of format %d", ErrNewer, format)
	}
	return r, nil
}

func (r *Record) setField(f wire.Field) error {
	switch f.Number {
	case fieldOrdinal:
		r.Document.Ordinal = uint32(f.Value)
	case fieldEventTime:
		r.EventTime = decodeTime(f)
	case fieldCreateTime:
		r.CreateTime = decodeTime(f)
	case fieldExpireTime:
		r.ExpireTime = decodeTime(f)
	case fieldMetadata:
		r.Metadata = append([]byte(nil), f.Bytes...)
	case fieldTag:
		r.Tags = append(r.Tags, string(f.Bytes))
	case fieldImportance:
		r.Importance = math.Float64frombits(f.Value)
	case fieldDerivedFrom:
		r.DerivedFrom = append(r.DerivedFrom, string(f.Bytes))
	case fieldOrigin:
		r.Origin = Origin(f.Value)
	case fieldTier:
		r.Tier = int(int32(f.Value))
	case fieldEmbedding:
		return r.setEmbedding(f.Bytes)
	default:
		if text := r.textField(f.Number); text != nil {
			*text = string(f.Bytes)
			return nil
		}
		r.setLife(f)
	}
	return nil
}

func (r *Record) setLife(f wire.Field) {
	switch f.Number {
	case fieldVersion:
		r.Version = int64(f.Value)
	case fieldUpdateTime:
		r.UpdateTime = decodeTime(f)
	case fieldPinned:
		r.Pinned = f.Value != 0
	case fieldArchived:
		r.Archived = f.Value != 0
	case fieldSlidingTTL:
		r.SlidingTTL = decodeSpan(f.Value)
	case fieldSupersededTime:
		r.SupersededTime = decodeTime(f)
	case fieldMarked:
		r.Document.Marked = f.Value != 0
	case fieldPlace:
		r.Document.Place = uint32(f.Value)
	case fieldSavedBy:
		r.SavedBy = string(f.Bytes)
	case fieldFirstVersion:
		r.FirstVersion = int64(f.Value)
	case fieldRepeats:
		r.Repeats = int64(f.Value)
	case fieldLastRepeatTime:
		r.LastRepeatTime = decodeTime(f)
	case fieldArchiveTime:
		r.ArchiveTime = decodeTime(f)
	case fieldValidUntil:
		r.ValidUntil = decodeTime(f)
	case fieldRelated:
		r.Related = f.Value != 0
	case fieldReview:
		r.Review = Review(f.Value)
	case fieldWriter:
		r.Writer = writer.Writer(f.Value)
	case fieldImportID:
		r.ImportID = string(f.Bytes)
	case fieldImportVersion:
		r.ImportVersion = int64(f.Value)
	}
}

// textField returns where the text field of that number goes, or nil.
func (r *Record) textField(number int) *string {
	switch number {
	case fieldID:
		return &r.ID
	case fieldText:
		return &r.Text
	case fieldKey:
		return &r.Key
	case fieldKind:
		return &r.Kind
	case fieldSession:
		return &r.SessionID
	case fieldAuthor:
		return &r.Author
	case fieldSupersedes:
		return &r.Supersedes
	case fieldSupersededBy:
		return &r.SupersededBy
	case fieldEmbeddingSpace:
		return &r.EmbeddingSpace
	}
	return nil
}

// appendTime appends microseconds since 1970; an unset time is left out.
func appendTime(b []byte, number int, t time.Time) []byte {
	if t.IsZero() {
		return b
	}
	return wire.AppendFixed64(b, number, uint64(t.UnixMicro()))
}

func decodeTime(f wire.Field) time.Time { return time.UnixMicro(int64(f.Value)).UTC() }

// decodeSpan reads microseconds; a span beyond what may be saved is cut.
func decodeSpan(us uint64) time.Duration {
	return time.Duration(min(us, uint64(MaxTTL.Microseconds()))) * time.Microsecond
}

func encodeVector(v []float32) []byte {
	b := make([]byte, 0, 4*len(v))
	for _, x := range v {
		b = binary.LittleEndian.AppendUint32(b, math.Float32bits(x))
	}
	return b
}

func (r *Record) setEmbedding(b []byte) error {
	if len(b)%4 != 0 {
		return fmt.Errorf("%w: vector of %d bytes", ErrDamaged, len(b))
	}
	r.Embedding = make([]float32, len(b)/4)
	for i := range r.Embedding {
		r.Embedding[i] = math.Float32frombits(binary.LittleEndian.Uint32(b[4*i:]))
	}
	return nil
}
