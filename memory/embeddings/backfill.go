package embeddings

import (
	"bytes"
	"context"
	"errors"
	"net/http"
	"time"

	"github.com/loom-bridge/loom-bridge/memory/embed"
	"github.com/loom-bridge/loom-bridge/memory/kv"
	"github.com/loom-bridge/loom-bridge/memory/kv/lease"
	"github.com/loom-bridge/loom-bridge/memory/packing"
	"github.com/loom-bridge/loom-bridge/memory/record"
	"github.com/loom-bridge/loom-bridge/memory/vector"
)

const (
	// backfillBatch is how many records get their vectors in one commit.
	backfillBatch = 128
	// firstBackoff and maxBackoff bound how long the background waits for an
	// embedder that fails; the time doubles from one to the other.
	firstBackoff = time.Second
	maxBackoff   = time.Minute
	// retryAfter is the time until the next look at what failed without the embedder.
	retryAfter = time.Minute
	// heldPause is the time until the next look at a scope for which another process
	// makes the vectors.
	heldPause = 2 * time.Second
	// maxEmbeddedBytes is how much of a text an embedder is given: some 6,000
	// tokens of English, as many as the larger models take.
	maxEmbeddedBytes = 24 << 10
	// minEmbeddedBytes is the shortest beginning of a text that is tried before a
	// record is left without a vector.
	minEmbeddedBytes = 512
	// probeText is a text that no embedder fails at.
	probeText = "word"
	// probes is how often it is asked for, probeAfter apart, while the embedder is
	// left alone because it kept failing: its client asks again within a minute.
	probes     = 8
	probeAfter = 10 * time.Second
)

// errTextRefused is what a log says of a text that has no vector.
var errTextRefused = errors.New("memory: the embedder fails at the text, and at no other")

// backfill makes the vectors of records that were saved without one. What is
// missing stands in the store, so that a restart goes on where it stopped.
type backfill struct {
	*Embeddings
	scopes *packing.Waiting[kv.Scope]

	// Only the goroutine that works touches the fields below.

	pause time.Duration // the next one, when the embedder fails
	// mismatched are scopes whose vectors in the embedder's space have another
	// dimension than the embedder makes: asking it again would cost and not help.
	mismatched map[kv.Scope]struct{}
}

// run works until ctx ends: on the scopes that an earlier run left, and on those
// that saves name.
func (b *backfill) run(ctx context.Context) {
	list := func() { b.addListed(ctx) }
	b.running.Go(list)
	b.running.Go(func() {
		if err := b.markOlder(ctx); err != nil {
			b.report(ctx, "find records that were saved without an embedder, until the next start", err)
		}
	})
	b.scopes.Run(ctx, func(ctx context.Context, scope kv.Scope) {
		b.work(ctx, scope)
		if b.scopes.Missed() {
			b.running.Go(list)
		}
	})
}

// addListed adds the scopes that stand on the list in the store. It tries until the list
// can be read.
func (b *backfill) addListed(ctx context.Context) {
	for ctx.Err() == nil {
		scopes, err := waitingScopes(ctx, b.engine)
		for _, scope := range scopes {
			b.scopes.Add(scope)
		}
		if err == nil {
			return
		}
		b.report(ctx, "find records without vectors, trying again in "+retryAfter.String(), err)
		kv.Sleep(ctx, retryAfter)
	}
}

// takeOver adds, from time to time, what stands on the list in the store: the process
// that saved it may be gone.
func (b *backfill) takeOver(ctx context.Context) {
	for {
		if kv.Sleep(ctx, lease.Term); ctx.Err() != nil {
			return
		}
		b.addListed(ctx)
	}
}

// work gives vectors to some of a scope's records that wait, and puts the scope back
// in the queue, behind the others. While the embedder fails it waits,
// longer each time.
func (b *backfill) work(ctx context.Context, scope kv.Scope) {
	if _, skip := b.mismatched[scope]; skip {
		return
	}
	left, err := b.step(ctx, scope)
	switch {
	case errors.Is(err, lease.ErrHeld) || errors.Is(err, lease.ErrLost):
		b.scopes.AddAfter(scope, heldPause)
	case err == nil:
		b.pause = firstBackoff
		if left {
			b.scopes.Add(scope)
		}
	case errors.Is(err, vector.ErrDimension):
		b.mismatched[scope] = struct{}{}
		b.report(ctx, "make vectors of "+scope.String()+", given up until the next start", err)
	case !passing(err): // of the scope or of the store, so that others are not kept waiting
		b.report(ctx, "make vectors of "+scope.String()+", trying again in "+retryAfter.String(), err)
		b.scopes.AddAfter(scope, retryAfter)
	default:
		b.report(ctx, "make vectors of "+scope.String()+", trying again", err)
		kv.Sleep(ctx, b.pause)
		b.pause = min(2*b.pause, maxBackoff)
		b.scopes.Add(scope)
	}
}

// passing reports whether the embedder failed, and with it the work on every scope.
func passing(err error) bool {
	return errors.Is(err, embed.ErrStatus) || errors.Is(err, embed.ErrUnreachable) || errors.Is(err, embed.ErrOpen) ||
		errors.Is(err, embed.ErrAnswer) || errors.Is(err, context.DeadlineExceeded)
}

func (e *Embeddings) report(ctx context.Context, work string, err error) {
	if ctx.Err() == nil {
		e.logger.WarnContext(ctx, "memory vectors: background work failed", "work", work, "error", err)
	}
}

// claim names the lease of the process that makes vectors of a scope's records.
func claim(scope kv.Scope) lease.Name { return lease.Scope(scope, "embed") }

// step gives vectors to some records that wait, while no other process does, and says
// whether there may be more.
func (b *backfill) step(ctx context.Context, scope kv.Scope) (more bool, err error) {
	claim := claim(scope)
	first, err := readWaiting(ctx, b.engine, scope, 1)
	if err != nil {
		return false, err
	}
	if len(first) == 0 {
		return false, errors.Join(b.finish(ctx, scope), b.leases.Release(ctx, claim))
	}
	err = b.leases.Do(ctx, claim, func(ctx context.Context) error {
		more, err = b.stepHeld(ctx, scope)
		return err
	})
	if err != nil && !errors.Is(err, lease.ErrHeld) {
		// The embedder of another process may do better.
		err = errors.Join(err, b.leases.Release(ctx, claim))
	}
	return more, err
}

// stepHeld does what step says, while no other process does it for the scope.
func (b *backfill) stepHeld(ctx context.Context, scope kv.Scope) (more bool, err error) {
	marks, err := readWaiting(ctx, b.engine, scope, backfillBatch)
	if err != nil || len(marks) == 0 {
		return err == nil, err
	}
	texts, err := readTexts(ctx, b.engine, scope, marks)
	if err != nil {
		return false, err
	}
	vectors, err := b.embedAll(ctx, texts)
	if err != nil {
		return false, err
	}
	if err := b.store(ctx, scope, marks, vectors); err != nil {
		return false, err
	}
	b.Saved(scope)
	return true, nil
}

// finish takes a scope off the list, if it stands there, unless a record waits.
func (b *backfill) finish(ctx context.Context, scope kv.Scope) error {
	var lists []kv.Ref
	for _, list := range []kv.Ref{List.Ref(scope), List.WholeRef(scope.Tenant)} {
		entry, err := b.engine.Get(ctx, kv.System, waitingScopeKey(list.Scope, scope))
		if err != nil {
			return err
		}
		if entry[0] != nil {
			lists = append(lists, list)
		}
	}
	if len(lists) == 0 {
		return nil
	}
	return b.writer.Do(ctx, kv.Request{
		Refs:  vector.Refs(scope)[:1],
		Blind: lists,
		Lazy:  true,
		Stage: func(ctx context.Context, tx *kv.Tx) error {
			marks, err := readWaiting(ctx, tx, scope, 1)
			if err != nil || len(marks) > 0 {
				return err
			}
			for _, list := range lists {
				tx.Delete(kv.System, waitingScopeKey(list.Scope, scope))
			}
			return nil
		},
	})
}

// readTexts returns what of each record an embedder is given; nothing for one
// that is gone or has moved on.
func readTexts(ctx context.Context, from kv.Getter, scope kv.Scope, marks []waiting) ([]string, error) {
	keys := make([][]byte, len(marks))
	for i, mark := range marks {
		keys[i] = record.Key(scope, mark.id)
	}
	texts := make([]string, len(marks))
	return texts, record.Each(ctx, from, keys, func(i int, r *record.Record, _ int) error {
		if r != nil && r.Document.Ordinal == marks[i].ordinal {
			texts[i] = embeddedText(r)
		}
		return nil
	})
}

// embeddedText is what an embedder is given of a record: who said it, and the
// text.
func embeddedText(r *record.Record) string {
	text := r.Text
	if r.Author != "" {
		text = r.Author + ": " + text
	}
	return beginning(text, maxEmbeddedBytes)
}

// beginning returns at most so many bytes of a text, whole characters.
func beginning(text string, limit int) string {
	if len(text) <= limit {
		return text
	}
	return string(bytes.ToValidUTF8([]byte(text[:limit]), nil))
}

// embedAll returns a vector for each text that is not empty; nil for one that
// the embedder refuses.
func (e *Embeddings) embedAll(ctx context.Context, texts []string) ([][]float32, error) {
	var asked []string
	var places []int
	for i, text := range texts {
		if text != "" {
			asked, places = append(asked, text), append(places, i)
		}
	}
	vectors := make([][]float32, len(texts))
	if len(asked) == 0 {
		return vectors, nil
	}
	made, err := e.embedder.Embed(ctx, asked)
	if blamesTexts(err) {
		if err = e.probe(ctx, err); err == nil {
			made, err = e.embedEach(ctx, asked)
		}
	}
	if err != nil {
		return nil, err
	}
	for i, place := range places {
		vectors[place] = made[i]
	}
	return vectors, nil
}

// blamesTexts reports whether it may be the texts that an embedder fails at. Some
// refuse a text that is too long, and some break down at it or answer nonsense.
func blamesTexts(err error) bool {
	var status *embed.StatusError
	return embed.Rejected(err) || errors.Is(err, embed.ErrAnswer) ||
		errors.As(err, &status) && status.Code >= http.StatusInternalServerError
}

// probe asks for the vector of a text that no embedder fails at, and returns the
// error that it was called for if that can't be had either: then the embedder or
// how it is set up is at fault, and no text.
func (e *Embeddings) probe(ctx context.Context, failure error) error {
	for range probes {
		_, err := e.embedder.Embed(ctx, []string{probeText})
		if err == nil {
			return nil
		}
		if !errors.Is(err, embed.ErrOpen) {
			return failure
		}
		kv.Sleep(ctx, probeAfter)
	}
	return failure
}

// embedEach asks for one text at a time, and for ever shorter beginnings of one
// that is refused. A text that fails while others don't gets no vector.
func (e *Embeddings) embedEach(ctx context.Context, texts []string) ([][]float32, error) {
	vectors := make([][]float32, len(texts))
	for i, text := range texts {
		v, err := e.embedOne(ctx, text)
		if blamesTexts(err) {
			if err = e.probe(ctx, err); err == nil {
				e.report(ctx, "make the vector of a record, which stays without", errTextRefused)
			}
		}
		if err != nil {
			return nil, err
		}
		vectors[i] = v
	}
	return vectors, nil
}

// embedOne asks for the vector of a text or of its beginning.
func (e *Embeddings) embedOne(ctx context.Context, text string) ([]float32, error) {
	for {
		made, err := e.embedder.Embed(ctx, []string{text})
		if err == nil {
			return made[0], nil
		}
		if !embed.Rejected(err) || len(text) <= minEmbeddedBytes {
			return nil, err
		}
		text = beginning(text, len(text)/2)
	}
}

// store commits vectors of records that still wait, and that they wait no more.
func (e *Embeddings) store(ctx context.Context, scope kv.Scope, marks []waiting, vectors [][]float32) error {
	return e.writer.Do(ctx, lease.Fence(ctx, kv.Request{Refs: vector.Refs(scope), Lazy: true, Stage: func(ctx context.Context, tx *kv.Tx) error {
		for i, mark := range marks {
			// Whoever gives the record a new number or deletes it takes the mark away.
			waits, err := isWaiting(ctx, tx, scope, mark.ordinal)
			if err != nil {
				return err
			}
			if !waits {
				continue
			}
			if vectors[i] != nil {
				if err := e.index.Add(ctx, tx, scope, e.embedder.Space(), mark.ordinal, vectors[i]); err != nil {
					return err
				}
			}
			tx.Delete(kv.Records, waitingKey(scope, mark.ordinal))
		}
		return nil
	}}))
}
