package hand

import (
	"context"
	"errors"
	"fmt"
	"maps"

	"github.com/loom-bridge/loom-bridge/bridge/audit"
	"github.com/loom-bridge/loom-bridge/bridge/tools"
	"github.com/loom-bridge/loom-bridge/context/blob"
	"github.com/loom-bridge/loom-bridge/context/media"
	"github.com/loom-bridge/loom-bridge/context/session"
	"github.com/loom-bridge/loom-bridge/context/step"
	"github.com/loom-bridge/loom-bridge/context/text"
	"github.com/loom-bridge/loom-bridge/memory/kv"
)

// record makes the answer of a call that ran, and records its step. The caller
// may have gone meanwhile: what happened is recorded all the same.
func (h *Hand) record(ctx context.Context, c *call, out outcome) Answer {
	ctx, cancel := context.WithTimeout(kv.Remembering(context.WithoutCancel(ctx)), commitTime)
	defer cancel()
	out.failure = h.cleaner(c.Scope.Tenant).redactFailure(out.failure, &out.redacted)
	answer := h.answer(c, &out)
	answer.Redacted.Add(c.redacted)
	answer.Redacted.Add(out.redacted)
	r := &recording{hand: h, call: c}
	what := h.reducible(ctx, c, out)
	if !readBack(out.result) {
		what.Offload = func(reduced *step.Reduced) { r.beginOffload(ctx, reduced) }
	}
	reduced := h.fitted(ctx, c, what)
	if out.body.replaced && out.body.stored != nil && !reduced.Offload {
		reduced.Offload, reduced.OffloadExt = true, "bin" // the bytes as they were
	}
	if answer.Success && reduced.Outcome == step.Failed {
		answer.Success, answer.ErrorMessage, answer.ErrorCode = false, reduced.Error, tools.Failed
	}
	r.outcome, r.reduced, r.answer = out, reduced, answer
	err := out.body.uploadErr
	if err == nil {
		err = r.upload(ctx)
	}
	if err == nil {
		err = r.commit(ctx)
	}
	r.endJoin(err)
	if err == nil {
		return r.answer
	}
	if out.result.Join != nil { // what the tool was to do is not done
		answer.Success, answer.ErrorCode = false, tools.Failed
		answer.ErrorMessage = text.Head("Nothing was done: "+err.Error(), step.MaxErrorBytes)
	}
	if !r.refused && !errors.Is(err, kv.ErrRequestReused) && !errors.Is(err, session.ErrTaskExists) { // those are the caller's mistakes
		h.logger.ErrorContext(ctx, "step not recorded", "tool", c.name(), "scope", c.Scope.String(), "error", err)
	}
	answer.Observation, answer.RecordError = reduced.Named(reduced.Observation, "the result", ""), err
	return answer
}

// answer is what can be said before anything is recorded. A caller that ran the
// tool itself knows the output.
func (h *Hand) answer(c *call, out *outcome) Answer {
	if out.failure == nil && c.reported {
		return Answer{Success: true}
	}
	if out.failure == nil {
		answer := Answer{Success: true}
		if out.given.Form == step.FormBytes {
			answer.Bytes, answer.Truncated = shownBytes(out.given.MediaType, out.body)
			return answer
		}
		var err error
		if out.json, answer.Output, answer.Truncated, err = output(out.result, out.body); err == nil {
			return answer
		}
		out.failure = &tools.Error{Code: tools.Failed, Message: "Internal error: the result is no JSON: " + err.Error(), Cause: err}
	}
	return Answer{ErrorMessage: text.Head(out.failure.Message, step.MaxErrorBytes), ErrorCode: out.failure.Code}
}

// reducible is the call as the reducer takes it.
func (h *Hand) reducible(ctx context.Context, c *call, out outcome) step.Call {
	reducible := step.Call{Tool: c.name(), Args: c.kept, Result: out.given}
	r, b := &reducible.Result, out.body
	switch {
	case out.failure != nil && out.given.Form == step.FormUnknown:
		r.Form = step.FormNone
	case out.given.Form == step.FormUnknown:
		r.Output, r.BodyKey = out.result.Values, out.result.BodyKey
		r.Form = formOf(out.result, b)
	case b.stored != nil || b.size > 0:
		r.BodyKey = outputKey
		if c.name() == step.ToolReadFile {
			r.BodyKey = "content"
		}
	}
	r.BodySize, r.BodyLines, r.BodySHA256, r.BodyBinary = b.size, b.lines, b.sha256, b.binary
	r.BodyText, r.BodyTail = b.text(), string(b.tail)
	if r.Form == step.FormJSON && r.JSON == nil && r.BodyKey == "" {
		r.JSON = out.json // the caller gets the same
	}
	if out.failure != nil {
		r.Failed, r.Refused, r.ErrorText = true, step.RefusedBy(string(out.failure.Code)), out.failure.Message
	}
	if out.result.File != "" {
		hash, _, err := h.Log.WrittenHash(ctx, c.Scope, out.result.File)
		if err != nil {
			h.logger.WarnContext(ctx, "hash of the last write not read", "error", err)
		}
		reducible.WrittenSHA256 = hash
	}
	return reducible
}

// formOf is the form of a result of a tool of the server. What it has read back
// belongs to another step.
func formOf(r tools.Output, b body) step.Form {
	switch {
	case readBack(r):
		return step.FormUnknown
	case r.BodyKey == "":
		return step.FormJSON
	case b.binary:
		return step.FormBytes
	}
	return step.FormText
}

// recording is the commit of one step.
type recording struct {
	hand    *Hand
	call    *call
	outcome outcome
	reduced step.Reduced
	// style is how the observation refers to the blob.
	style step.ReferenceStyle
	// offload is the blob the step refers to, given that of the result as it was
	// given where that is another one, kept one that only its id leads to, args that
	// of its arguments; nil without one.
	offload, given, kept, args *blob.Stored
	// begun is what was begun to be offloaded before all of the step was known, with the
	// error of that.
	begun    []byte
	begunErr error
	answer   Answer
	// refused says that the changes to be committed with the step were refused; written
	// that they were committed.
	refused, written bool
	// audit is the record of the call, auditing its place in the commit; nil without an
	// audit.
	audit    *audit.Record
	auditing audit.Entry
}

// upload stores what the commit will refer to and is not stored yet.
func (r *recording) upload(ctx context.Context) (err error) {
	switch {
	case !r.reduced.Offload || readBack(r.outcome.result):
		r.offload = nil
	case r.reduced.OffloadBytes == nil:
		r.offload = r.outcome.body.stored
	default:
		if r.beginOffload(ctx, &r.reduced); r.begunErr != nil {
			return r.begunErr
		}
	}
	if r.reduced.KeepGiven {
		if r.given = r.outcome.body.stored; r.given == nil {
			if r.given, err = r.add(ctx, r.hand.Blobs.AddJSON, r.outcome.given.JSON); err != nil {
				return err
			}
		}
	}
	if content, ok := r.call.kept[r.reduced.KeepArg].(string); ok {
		if r.kept, err = r.add(ctx, r.hand.Blobs.Add, []byte(content)); err != nil {
			return err
		}
	}
	if r.reduced.KeepArgs {
		r.args, err = r.add(ctx, r.hand.Blobs.Add, r.argsText())
	}
	return err
}

// beginOffload stores the bytes that a step refers to, unless that was begun.
func (r *recording) beginOffload(ctx context.Context, reduced *step.Reduced) {
	data := reduced.OffloadBytes
	if len(data) == len(r.begun) && (len(data) == 0 || &data[0] == &r.begun[0]) && r.offload != nil {
		return
	}
	add := r.hand.Blobs.Add
	if g := reduced.Given; g.Source == step.SourceOutcome && g.Form == step.FormJSON {
		add = r.hand.Blobs.AddJSON
	}
	r.begun = data
	r.offload, r.begunErr = r.add(ctx, add, data)
}

// argsText is the text of the arguments as the caller gave it, without content
// that must not be kept.
func (r *recording) argsText() []byte {
	if r.reduced.KeepArg == "" {
		return r.call.keptArgs
	}
	args := maps.Clone(r.call.kept)
	delete(args, r.reduced.KeepArg)
	return text.CanonicalJSON(args)
}

// add stores data by one of the ways to add a blob.
func (r *recording) add(ctx context.Context, add func(context.Context, kv.Scope, []byte) (blob.Stored, error), data []byte) (*blob.Stored, error) {
	stored, err := add(ctx, r.call.Scope, data)
	return &stored, err
}

func (r *recording) commit(ctx context.Context) error {
	h, c := r.hand, r.call
	req := kv.Request{Refs: []kv.Ref{h.Log.Ref(c.Scope)}, Stage: r.stage, Foresee: r.foresee}
	if r.offload != nil {
		r.style = h.Style(ctx, c.Scope, c.SessionID)
	}
	for _, stored := range []*blob.Stored{r.offload, r.given, r.kept, r.args} {
		if stored != nil {
			stored.Held() // packed: other commits need not wait for it
		}
	}
	if r.offload != nil || r.given != nil || r.kept != nil || r.args != nil {
		req.Refs = append(req.Refs, h.Blobs.Ref(c.Scope))
	}
	if c.intent != "" {
		req.Blind = []kv.Ref{h.Log.IntentRef(c.Scope)}
	}
	if join := r.outcome.result.Join; join != nil {
		req.Refs, req.Blind = append(req.Refs, join.Refs...), append(req.Blind, join.Blind...)
	}
	if err := r.beginAudit(ctx, &req); err != nil {
		return err
	}
	err := h.Writer.Do(ctx, req)
	r.written = err == nil
	r.endAudit(err)
	if replayed, ok := errors.AsType[*answeredError](err); ok {
		r.answer, err = h.kept(ctx, c.Scope, replayed.kept)
	}
	if err != nil {
		return fmt.Errorf("hand: record %s: %w", c.name(), err)
	}
	h.Log.Committed(c.Scope, r.answer.Position)
	return nil
}

// endJoin reports the outcome of the step to what was to be committed with it.
func (r *recording) endJoin(err error) {
	if !r.written && err == nil {
		err = errAnswered
	}
	r.outcome.endJoin(err)
}

// errAnswered: the step of an earlier call stands for this one.
var errAnswered = errors.New("hand: the request was answered before")

func (out *outcome) endJoin(err error) {
	if join := out.result.Join; join != nil && join.End != nil {
		join.End(err)
	}
}

// answeredError says that another process has answered the request meanwhile.
type answeredError struct{ kept []byte }

func (*answeredError) Error() string { return "hand: the request was answered by another process" }

// stage is run again when the commit has to be repeated, so it starts from what
// is known without it.
func (r *recording) stage(ctx context.Context, tx *kv.Tx) error {
	h, c := r.hand, r.call
	r.refused = false
	ref := h.Log.Ref(c.Scope)
	kept, found, err := kv.LookupOnce(ctx, tx, ref, c.once, c.digest)
	if err != nil {
		return err
	}
	if found {
		return &answeredError{kept}
	}
	if lost, err := h.lostIntent(ctx, tx, c); lost || err != nil {
		if err == nil {
			err = fmt.Errorf("%w while the tool ran; the step says that its outcome is unknown", kv.ErrFenced)
		}
		return err
	}
	answer := r.answer
	answer.Blob = r.outcome.result.Blob
	now := h.now().UTC()
	s, position, err := h.Log.StageStep(ctx, tx, c.Scope, func(number uint64) (step.Step, error) {
		s := r.step(number)
		s.Time = now
		err := r.stageBlobs(ctx, tx, &s, &answer)
		r.name(&s)
		return s, err
	})
	if err != nil {
		return err
	}
	if c.task != nil {
		own := *c.task
		own.Step = s.Number
		task, err := h.Log.StageTask(ctx, tx, c.Scope, own)
		if err != nil {
			return err
		}
		answer.TaskID = task.ID
	}
	kv.StageOnce(tx, ref, c.once, c.digest, encodeKept(s.Number, answer), now)
	if written := r.outcome.result.Written; written != nil {
		h.Log.StageWrittenHash(tx, c.Scope, written.File, written.SHA256)
	}
	if c.intent != "" {
		h.Log.StageIntentDone(tx, c.Scope, c.intent)
	}
	if join := r.outcome.result.Join; join != nil {
		if err := join.Stage(ctx, tx, s.Number); err != nil {
			r.refused = true
			return err
		}
	}
	r.stageAudit(tx, s.Number)
	answer.Step, answer.Position = &s, position
	answer.Observation, answer.Recorded = s.ToObservation(r.style), true
	r.answer = answer
	return nil
}

// foresee adds what the stage reads in any case.
func (r *recording) foresee(along *kv.Reads) {
	log, c := r.hand.Log, r.call
	log.ForeseeStep(along, c.Scope, c.SessionID)
	kv.ForeseeOnceOf(along, log.Ref(c.Scope), "", c.once)
}

// step is the step but for its number, time and blob.
func (r *recording) step(number uint64) step.Step {
	c, red := r.call, r.reduced
	s := step.Step{
		Number:      number,
		SessionID:   c.SessionID,
		ToolName:    c.name(),
		CalledAs:    c.Name,
		MinimalArgs: red.MinimalArgs,
		Args:        red.Args,
		Observation: red.Observation,
		Outcome:     red.Outcome,
		Thought:     c.Thought,
		Error:       red.Error,
		ErrorCode:   string(r.answer.ErrorCode),
		Inline:      red.Inline,
		Evidence:    red.Evidence,
		Given:       red.Given,
		Metadata:    red.Metadata,
		TurnID:      c.TurnID,
		CallID:      c.CallID,
		Pinned:      c.Pinned,
	}
	if r.answer.ErrorCode == tools.OutcomeUnknown {
		s.Outcome = step.Unknown
	}
	return s
}

// name puts the names that are known only with the step's number into its texts.
func (r *recording) name(s *step.Step) {
	for _, text := range []*string{&s.Observation, &s.Inline, &s.Evidence} {
		*text = r.reduced.Named(*text, s.ID(), s.OutcomePath)
	}
}

const (
	// argsName begins the path of a blob with a step's arguments.
	argsName = "args"
	// extLog ends that of what a command printed.
	extLog = "log"
)

// stageBlobs stages the uploads, under names made from the step's number.
func (r *recording) stageBlobs(ctx context.Context, tx *kv.Tx, s *step.Step, answer *Answer) error {
	kind, id := r.reduced.OffloadKind, s.ID()
	if r.offload != nil {
		stored := *r.offload
		switch g := s.Given; {
		case g.Source != step.SourceOutcome:
		case g.Form == step.FormJSON:
			stored.Kind = blob.KindJSON
		case g.MediaType != "":
			stored.Kind, stored.MediaType = media.Kind(g.MediaType), g.MediaType
		}
		e, err := r.stageBlob(ctx, tx, stored, id, blob.Name{Kind: kind, Step: s.Number, Ext: r.reduced.OffloadExt})
		if err != nil {
			return err
		}
		answer.Blob = &e
	}
	if r.reduced.Offload && answer.Blob != nil {
		s.OutcomeRef, s.OutcomePath = answer.Blob.Ref, answer.Blob.Path
	} else if r.reduced.Offload {
		s.OutcomePath = r.outcome.result.Origin // it is no blob, so it has no ref
	}
	if r.given != nil {
		e, err := r.stageBlob(ctx, tx, *r.given, id, blob.Name{Kind: kind, Step: s.Number, Ext: givenExt(s.Given)})
		if err != nil {
			return err
		}
		s.Given.Path = e.Path
	}
	if r.kept != nil {
		if _, err := r.stageBlob(ctx, tx, *r.kept, id, blob.Name{Kind: kind, Step: s.Number, Ext: "txt"}); err != nil {
			return err
		}
	}
	if r.args != nil {
		// The step's id leads to its result, so it must not lead here.
		e, err := r.stageBlob(ctx, tx, *r.args, "", blob.Name{Kind: argsName, Step: s.Number, Ext: "json"})
		if err != nil {
			return err
		}
		s.ArgsPath = e.Path
	}
	return nil
}

// givenExt returns the file extension of an original result that is kept in addition to the
// text extracted from it.
func givenExt(g step.Given) string {
	switch g.Form {
	case step.FormJSON:
		return "json"
	case step.FormText:
		return "txt"
	}
	return "bin"
}

func (r *recording) stageBlob(ctx context.Context, tx *kv.Tx, stored blob.Stored, stepID string, name blob.Name) (blob.Entry, error) {
	e := blob.Entry{StepID: stepID, SessionID: r.call.SessionID, Category: r.reduced.OffloadCategory}
	if name.Ext == extLog && !stored.Binary {
		e.Kind = blob.KindLog
	}
	return r.hand.Blobs.StageNamed(ctx, tx, r.call.Scope, stored, e, name)
}
