package transfer

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"time"

	"github.com/loom-bridge/loom-bridge/context/blob"
)

const (
	// MaxLineBytes bounds a line: the longest stored value there can be, as base64.
	MaxLineBytes = 6 << 20
	// pieceBytes is how much of an offloaded result stands in a line.
	pieceBytes = 256 << 10
	// format is the version of the lines.
	format = 1
)

// Errors of imports.
var (
	// ErrLine: a line is not a line of an export, or not the expected next one.
	ErrLine = errors.New("transfer: line of an export can't be taken")
	// ErrBusy: other exports and imports under way hold as much as all of them may.
	ErrBusy = errors.New("transfer: too much is exported and imported at once; try again")
	// ErrSecret: the server keeps no text that looks like a secret, and the line holds one.
	ErrSecret = fmt.Errorf("%w: it looks like it holds a secret, which this server does not store", ErrLine)
)

// errOtherwise: a line is read, and an export would write it in another way.
var errOtherwise = fmt.Errorf("%w: it is not as an export writes it", ErrLine)

// Kinds of lines.
const (
	kindSession = "session"
	kindPart    = "part"
	kindResult  = "result"
	kindBytes   = "bytes"
	kindEnd     = "end"
)

// jsonLine is its form in JSON; which fields it has depends on the kind.
type jsonLine struct {
	Kind    string  `json:"kind"`
	Format  int     `json:"format,omitempty"`
	Session string  `json:"session,omitempty"`
	Part    string  `json:"part,omitempty"`
	Number  uint64  `json:"number,omitempty"`
	Stored  []byte  `json:"stored,omitempty"`
	Result  *result `json:"result,omitempty"`
	Bytes   []byte  `json:"bytes,omitempty"`
	Lines   int     `json:"lines,omitempty"`
}

// result is the entry of an offloaded result.
type result struct {
	Paths       []string   `json:"paths"` // the one it was made with first
	SHA256      string     `json:"sha256"`
	Size        int64      `json:"size"`
	Step        string     `json:"step,omitempty"`
	Session     string     `json:"session,omitempty"`
	Task        string     `json:"task,omitempty"`
	Kind        string     `json:"kind,omitempty"`
	MediaType   string     `json:"media_type,omitempty"`
	Category    string     `json:"category,omitempty"`
	Time        time.Time  `json:"time"`
	TTL         string     `json:"ttl,omitempty"`
	Tier        uint8      `json:"tier,omitempty"`
	PromoteTime *time.Time `json:"promote_time,omitempty"`
	Important   bool       `json:"important,omitempty"`
	Archive     string     `json:"archive,omitempty"`
	Tags        []string   `json:"tags,omitempty"`
	ArchiveTime *time.Time `json:"archive_time,omitempty"`
}

func resultOf(e blob.Entry) *result {
	r := &result{
		Paths: e.Paths(), SHA256: e.Ref, Size: e.Size, Step: e.StepID, Session: e.SessionID, Task: e.TaskID, Kind: e.Kind, MediaType: e.MediaType,
		Category: e.Category, Time: e.Time.UTC(), Tier: uint8(e.Tier), PromoteTime: written(e.PromoteTime), Important: e.Important,
		Archive: e.Archive.Category, Tags: e.Archive.Tags, ArchiveTime: written(e.Archive.Time),
	}
	if e.TTL > 0 {
		r.TTL = e.TTL.String()
	}
	return r
}

func written(t time.Time) *time.Time {
	if t.IsZero() {
		return nil
	}
	t = t.UTC()
	return &t
}

func (r *result) entry() (blob.Entry, error) {
	n := len(r.Paths)
	if n == 0 || n > blob.MaxAliases+1 {
		return blob.Entry{}, fmt.Errorf("%w: a result with %d paths", ErrLine, n)
	}
	e := blob.Entry{
		Path: r.Paths[n-1], Aliases: r.Paths[:n-1], Ref: r.SHA256, Size: r.Size, StepID: r.Step, SessionID: r.Session, TaskID: r.Task, Kind: r.Kind,
		MediaType: r.MediaType, Category: r.Category, Time: kept(r.Time), Tier: blob.Tier(r.Tier), PromoteTime: read(r.PromoteTime), Important: r.Important,
		Archive: blob.Archived{Category: r.Archive, Tags: r.Tags, Time: read(r.ArchiveTime)},
	}
	if r.TTL != "" {
		ttl, err := time.ParseDuration(r.TTL)
		if err != nil || ttl <= 0 || ttl%time.Millisecond != 0 {
			return e, fmt.Errorf("%w: ttl is %q", ErrLine, r.TTL)
		}
		e.TTL = ttl
	}
	came, err := jsonLine{Result: r}.encode()
	if err != nil {
		return e, err
	}
	if again, err := (jsonLine{Result: resultOf(e)}).encode(); err != nil || !bytes.Equal(came, again) {
		return e, errOtherwise
	}
	return e, nil
}

func read(t *time.Time) time.Time {
	if t == nil {
		return time.Time{}
	}
	return kept(*t)
}

// kept is what a store keeps of a time.
func kept(t time.Time) time.Time {
	if t.IsZero() {
		return time.Time{}
	}
	return time.UnixMicro(t.UnixMicro())
}

// encode returns the line without a newline. Equal lines give equal bytes.
func (l jsonLine) encode() ([]byte, error) {
	var b bytes.Buffer
	e := json.NewEncoder(&b)
	e.SetEscapeHTML(false)
	if err := e.Encode(l); err != nil {
		return nil, err
	}
	return bytes.TrimSuffix(b.Bytes(), []byte("\n")), nil
}

// parse reads a line, which must be as encode writes it: what an import dropped could not
// be exported again.
func parse(text []byte) (l jsonLine, err error) {
	if len(text) > MaxLineBytes {
		return l, fmt.Errorf("%w: it has %d bytes, more than %d", ErrLine, len(text), MaxLineBytes)
	}
	d := json.NewDecoder(bytes.NewReader(text))
	d.DisallowUnknownFields()
	if err := d.Decode(&l); err != nil {
		return l, fmt.Errorf("%w: %s", ErrLine, err.Error())
	}
	if _, err := d.Token(); !errors.Is(err, io.EOF) {
		return l, fmt.Errorf("%w: more stands behind the object", ErrLine)
	}
	again, err := l.own().encode()
	if err == nil && !bytes.Equal(again, text) {
		err = errOtherwise
	}
	return l, err
}

// own is the line with the fields of its kind alone.
func (l jsonLine) own() jsonLine {
	switch l.Kind {
	case kindSession:
		return jsonLine{Kind: l.Kind, Format: l.Format, Session: l.Session}
	case kindPart:
		return jsonLine{Kind: l.Kind, Part: l.Part, Number: l.Number, Stored: l.Stored}
	case kindResult:
		return jsonLine{Kind: l.Kind, Result: l.Result}
	case kindBytes:
		return jsonLine{Kind: l.Kind, Bytes: l.Bytes}
	case kindEnd:
		return jsonLine{Kind: l.Kind, Session: l.Session, Lines: l.Lines}
	}
	return jsonLine{Kind: l.Kind}
}
