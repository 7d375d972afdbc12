package hand

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"
	"unicode/utf8"

	"github.com/loom-bridge/loom-bridge/bridge/tools"
	"github.com/loom-bridge/loom-bridge/context/blob"
	"github.com/loom-bridge/loom-bridge/context/compress"
	"github.com/loom-bridge/loom-bridge/memory/kv"
	"github.com/loom-bridge/loom-bridge/memory/kv/invalid"
)

const (
	// MaxResultBytes bounds a result that Compress takes.
	MaxResultBytes = 1 << 20
	// maxResultPathBytes bounds the name of a file that a result shows.
	maxResultPathBytes = 4 << 10
	// renewShare is how much of its time a stored result must have left, one part
	// in so many, to be referred to again as it is.
	renewShare = 2
	// maxResultFile bounds the stored form: JSON takes up to six bytes for one.
	maxResultFile = 6*MaxResultBytes + 16<<10
	// maxRaces bounds how often a path that was free is found taken.
	maxRaces = 8
)

// CompressRequest is the result of a tool call that a prompt should show.
type CompressRequest struct {
	// Scope is the agent whose result it is. Required.
	Scope kv.Scope
	// SessionID is the session it belongs to. Default session.DefaultSession.
	SessionID string
	// CallID is the model's id of the call, at most session.MaxCallIDBytes.
	CallID string
	// Result is what the tool gave: at most MaxResultBytes, Tool is required. Its
	// Ref, RefPath and Pressure are set here. Kind is, by default, what the registry says of
	// the tool.
	Result compress.Result
}

// CompressAnswer is what a prompt shows of a result, and where the whole lies.
type CompressAnswer struct {
	compress.Compressed
	// Blob has the whole; nil when the text is the whole.
	Blob *blob.Entry
}

// Compress shortens a result. The whole is stored, synced, before the short form
// is returned, at "storage/tool_results/{ref}.json", where ref begins the hash of
// the content; what is not UTF-8 is stored as it is, at "{ref}.bin". The same
// content again gives the same ref and is not stored twice. Errors: *invalid.Error, the
// errors of the blob store, such as *blob.QuotaError, and ErrClosed; nothing is stored
// then.
func (h *Hand) Compress(ctx context.Context, r CompressRequest) (CompressAnswer, error) {
	if err := h.begin(); err != nil {
		return CompressAnswer{}, err
	}
	defer h.running.Done()
	if err := h.checkCompress(&r); err != nil {
		return CompressAnswer{}, err
	}
	sum := sha256.Sum256([]byte(r.Result.Content))
	hash := hex.EncodeToString(sum[:])
	for digits := blob.MinRefDigits; digits <= len(hash); digits++ {
		w := &wholeResult{hand: h, request: &r, ref: hash[:digits]}
		short := w.shorten()
		if !short.IsCompressed || r.Result.IsCompressed {
			return CompressAnswer{Compressed: short}, nil
		}
		e, err := w.keep(ctx)
		if errors.Is(err, errTaken) {
			continue
		}
		if err != nil {
			return CompressAnswer{}, fmt.Errorf("hand: keep the result of %s: %w", r.Result.Tool, err)
		}
		return CompressAnswer{Compressed: short, Blob: &e}, nil
	}
	return CompressAnswer{}, fmt.Errorf("hand: %w: no ref of the result is free", errTaken)
}

// checkCompress checks a request and fills in what it leaves open.
func (h *Hand) checkCompress(r *CompressRequest) error {
	fields := Request{Scope: r.Scope, SessionID: r.SessionID, CallID: r.CallID}
	if err := checkFields(&fields); err != nil {
		return err
	}
	r.SessionID = fields.SessionID
	in := &r.Result
	switch {
	case in.Tool == "" || len(in.Tool) > tools.MaxNameBytes || !utf8.ValidString(in.Tool):
		return invalid.Field(ErrInvalid, "tool_name", "must be 1 to %d bytes of UTF-8", tools.MaxNameBytes)
	case len(in.Content) > MaxResultBytes:
		return invalid.Field(ErrInvalid, "content", "is longer than %d bytes", MaxResultBytes)
	case in.Kind != "" && !slices.Contains(compress.Kinds(), in.Kind):
		return invalid.Field(ErrInvalid, "result_kind", "is not search, file, exec, api or text")
	case in.Hint > compress.HintSearch:
		return invalid.Field(ErrInvalid, "hint", "is unknown")
	case in.Threshold < 0:
		return invalid.Field(ErrInvalid, "threshold_chars", "must not be negative")
	case len(in.Path) > maxResultPathBytes || !utf8.ValidString(in.Path):
		return invalid.Field(ErrInvalid, "path", "is longer than %d bytes, or no UTF-8", maxResultPathBytes)
	}
	in.Pressure = h.Pressure(r.Scope, r.SessionID)
	if in.Kind == "" {
		in.Kind = h.resultKind(r.Scope.Tenant, in.Tool)
	}
	return nil
}

// resultKind is what the tool's descriptor says. That its results are text, as
// most are, says nothing about which text.
func (h *Hand) resultKind(tenant, name string) compress.Strategy {
	tool, ok := h.Tools.Find(tenant, name)
	if !ok {
		return compress.None
	}
	kind := compress.Strategy(tool.Descriptor().ResultKind)
	if kind == compress.Text || !slices.Contains(compress.Kinds(), kind) {
		return compress.None
	}
	return kind
}

// errTaken: other content has the ref.
var errTaken = errors.New("the ref is taken")

// wholeResult is a result under the ref that it is stored by.
type wholeResult struct {
	hand    *Hand
	request *CompressRequest
	ref     string
	// path is where it lies.
	path string
}

// shorten decides on the path and makes the short form, which shows it.
func (w *wholeResult) shorten() compress.Compressed {
	in := w.request.Result
	w.path = blob.ResultPath(w.ref, blob.KindJSON)
	if !utf8.ValidString(in.Content) {
		w.path = blob.ResultPath(w.ref, blob.KindBinary)
	}
	in.Ref, in.RefPath = w.ref, w.path
	return w.hand.Compressor.Compress(in)
}

// keep returns the blob of the whole, and stores it unless it is stored.
// errTaken says that other content has the ref.
func (w *wholeResult) keep(ctx context.Context) (blob.Entry, error) {
	for range maxRaces {
		e, err := w.kept(ctx)
		if !errors.Is(err, blob.ErrNotFound) {
			return e, err
		}
		e, err = w.store(ctx)
		if !errors.Is(err, errTaken) {
			return e, err
		}
	}
	return blob.Entry{}, errTaken
}

// kept returns the blob if it is there, with enough of its time left for the
// caller to refer to it.
func (w *wholeResult) kept(ctx context.Context) (blob.Entry, error) {
	blobs, scope := w.hand.Blobs, w.request.Scope
	e, err := blobs.Use(ctx, scope, w.path)
	if err != nil {
		return blob.Entry{}, err
	}
	same, err := w.isIn(ctx, e)
	if err != nil {
		return blob.Entry{}, err
	}
	if !same {
		return blob.Entry{}, errTaken
	}
	expires, ever := e.ExpireTime()
	if ever && expires.Sub(w.hand.now()) < e.TTL/renewShare {
		return blobs.Renew(ctx, scope, w.path)
	}
	return e, nil
}

// isIn reports whether a stored result has this content. One that is damaged has
// none.
func (w *wholeResult) isIn(ctx context.Context, e blob.Entry) (bool, error) {
	if e.Size > maxResultFile {
		return false, nil
	}
	stored := make([]byte, 0, e.Size)
	for piece, err := range w.hand.Blobs.Read(ctx, w.request.Scope, e, 0, -1) {
		if errors.Is(err, blob.ErrDamaged) {
			return false, nil
		}
		if err != nil {
			return false, err
		}
		stored = append(stored, piece...)
	}
	if !strings.HasSuffix(w.path, ".json") {
		return string(stored) == w.request.Result.Content, nil
	}
	var file resultFile
	err := json.Unmarshal(stored, &file)
	return err == nil && file.Content == w.request.Result.Content, nil
}

// store writes the whole. errTaken says that the path has a blob by now.
func (w *wholeResult) store(ctx context.Context) (blob.Entry, error) {
	h, r := w.hand, w.request
	now := h.now().UTC().Truncate(time.Microsecond)
	data, err := w.file(now)
	if err != nil {
		return blob.Entry{}, err
	}
	stored, err := h.Blobs.Add(ctx, r.Scope, data)
	if err != nil {
		return blob.Entry{}, err
	}
	var e blob.Entry
	err = h.Writer.Do(ctx, kv.Request{Refs: []kv.Ref{h.Blobs.Ref(r.Scope)}, Stage: func(ctx context.Context, tx *kv.Tx) (err error) {
		e, err = h.Blobs.Stage(ctx, tx, r.Scope, stored, blob.Entry{
			Path: w.path, SessionID: r.SessionID, Category: w.category(), Time: now,
		})
		if err == nil && e.Path != w.path {
			err = errTaken
		}
		return err
	}})
	return e, err
}

// resultFile is the stored form of a result that is text.
type resultFile struct {
	RefID     string    `json:"ref_id"`
	ToolName  string    `json:"tool_name"`
	ToolID    string    `json:"tool_id"`
	CreatedAt time.Time `json:"created_at"`
	// OriginalLength is the length of the content in characters.
	OriginalLength int    `json:"original_length"`
	Content        string `json:"content"`
}

// file returns the stored bytes: JSON text, or the content itself if JSON can't hold it.
func (w *wholeResult) file(now time.Time) ([]byte, error) {
	in := w.request.Result
	if !strings.HasSuffix(w.path, ".json") {
		return []byte(in.Content), nil
	}
	return compact(resultFile{
		RefID: w.ref, ToolName: in.Tool, ToolID: w.request.CallID, CreatedAt: now,
		OriginalLength: utf8.RuneCountInString(in.Content), Content: in.Content,
	})
}

// category decides how long the result stays.
func (w *wholeResult) category() string {
	switch compress.StrategyOf(w.request.Result) {
	case compress.Search:
		return blob.CategorySearch
	case compress.File:
		return blob.CategoryRead
	case compress.Exec:
		return blob.CategoryShell
	}
	return blob.CategoryTool
}
