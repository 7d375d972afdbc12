package record

import (
	"encoding/binary"
	"fmt"
	"slices"
	"sync"

	"github.com/loom-bridge/loom-bridge/context/assemble/provider"
	"github.com/loom-bridge/loom-bridge/context/assemble/render"
	"github.com/loom-bridge/loom-bridge/context/tokens"
	"github.com/loom-bridge/loom-bridge/memory/kv"
	"github.com/loom-bridge/loom-bridge/memory/kv/cache"
)

// What is remembered of prompts, in memory only.
const (
	// maxSessions bounds the sessions whose last prompt is known, one for each kind; the
	// one that was asked for longest ago goes. A prompt of 300 messages takes 12 KB.
	maxSessions = 1 << 11
	// maxKinds is of how many models and formats the last prompt of a session is known.
	maxKinds = 4
	// maxPrompts of a session may still get a usage report.
	maxPrompts = 4
	// maxTexts bounds the text of last prompts, in bytes: enough for some hundred sessions.
	// Without the text, only the place where the next prompt differs is unknown.
	maxTexts = 32 << 20
	// maxAgents bounds the agents whose ratios are known.
	maxAgents = 1 << 10
)

// Known is what a recorder remembers of the prompts it made. All methods are
// safe for concurrent use.
type Known struct {
	// Models has the ratios that usage reports correct.
	Models *tokens.Models

	mu       sync.Mutex // guards sessions
	sessions *cache.LRU[sessionKey, Last]
	// meters has one for each agent, so that none spoils another's ratio.
	meters *cache.Cache[kv.Scope, *tokens.Meter]
	trails *cache.Cache[sessionKey, *render.Trail]
	// texts are the messages of sessions' last prompts.
	texts *cache.Cache[sessionKey, lastTexts]
	// asks are how often sessions asked for what had been folded away.
	asks *cache.Cache[sessionKey, asked]
}

type sessionKey struct {
	scope   kv.Scope
	session string
}

// Last is the last prompt of a session, with the predictions for earlier ones.
type Last struct {
	// kind is whose cache it went to, total what its receipt said that it takes.
	kind  CacheKind
	total int
	// places are the ends of its tools and messages, head how many of them stand
	// before the history.
	places []render.End
	head   int
	// settled is what it had before its goal with nothing folded.
	settled int
	// Pressure is that of its receipt, Free what it left of the window.
	Pressure float64
	Free     int
	// Account says what takes most of it, for a report that it was refused.
	Account render.OverflowError
	// marks are its cache marks.
	marks []provider.Mark
	sent  []sentPrompt
	// others are the last prompts of other kinds, the newest first.
	others []Last
}

// CacheKind is what prompts have in common that can share a provider's cache.
type CacheKind struct {
	Model  string
	Format provider.Format
}

// Of is the session's last prompt of a kind; the zero one when it is not known.
func (p Last) Of(kind CacheKind) Last {
	if p.kind == kind {
		return p
	}
	at := slices.IndexFunc(p.others, func(o Last) bool { return o.kind == kind })
	if at < 0 {
		return Last{}
	}
	return p.others[at]
}

// sentPrompt is a prompt that usage may be reported for.
type sentPrompt struct {
	asked     tokens.Request
	last      tokens.Anchor
	predicted int
	stable    int
	// usage is the report about it that was learned from; zero: none yet.
	usage tokens.Usage
	// outdated says in a report's answer that a newer prompt was reported.
	outdated bool
}

func newKnown(models *tokens.Models) *Known {
	return &Known{
		Models:   models,
		sessions: cache.NewLRU[sessionKey, Last](maxSessions),
		meters:   cache.New[kv.Scope, *tokens.Meter](maxAgents),
		trails:   cache.New[sessionKey, *render.Trail](render.MaxTrails),
		texts:    cache.New[sessionKey, lastTexts](maxTexts),
		asks:     cache.New[sessionKey, asked](maxSessions),
	}
}

// Last returns the session's last prompt; the zero one when it is not known.
// What it holds is never changed.
func (k *Known) Last(scope kv.Scope, session string) Last {
	k.mu.Lock()
	defer k.mu.Unlock()
	p, _ := k.sessions.Get(sessionKey{scope, session})
	return p
}

// remember makes p the session's last prompt.
func (k *Known) remember(scope kv.Scope, session string, p Last, sent sentPrompt) {
	k.mu.Lock()
	defer k.mu.Unlock()
	key := sessionKey{scope, session}
	before, _ := k.sessions.Get(key)
	same := func(s sentPrompt) bool { return s.asked.ID == sent.asked.ID }
	if at := slices.IndexFunc(before.sent, same); at >= 0 {
		sent.usage = before.sent[at].usage
	}
	p.sent = append(slices.DeleteFunc(slices.Clone(before.sent), same), sent)
	p.sent = p.sent[max(len(p.sent)-maxPrompts, 0):]
	others := before.others
	if len(before.places) > 0 {
		before.sent, before.others = nil, nil
		others = append([]Last{before}, others...)
	}
	p.others = slices.DeleteFunc(slices.Clone(others), func(o Last) bool { return o.kind == p.kind })
	p.others = p.others[:min(len(p.others), maxKinds-1)]
	k.sessions.Put(key, p, 1+len(p.others))
}

// report returns the prompt with an id, and notes usage that was reported for it
// and is believed. What was noted before is in its usage.
func (k *Known) report(scope kv.Scope, session, id string, u tokens.Usage) (sent sentPrompt, ok bool) {
	k.mu.Lock()
	defer k.mu.Unlock()
	p, _ := k.sessions.Get(sessionKey{scope, session})
	at := slices.IndexFunc(p.sent, func(s sentPrompt) bool { return s.asked.ID == id })
	if at < 0 {
		return sentPrompt{}, false
	}
	sent = p.sent[at]
	sent.outdated = slices.ContainsFunc(p.sent[at+1:], func(s sentPrompt) bool { return s.usage != (tokens.Usage{}) })
	if Believed(sent.anchor(u)) {
		p.sent[at].usage = u
	}
	return sent, true
}

// anchor is what usage makes of the prompt.
func (s *sentPrompt) anchor(u tokens.Usage) tokens.Anchor {
	return tokens.Anchor{
		Model: s.asked.Model, ID: s.asked.ID, Local: s.asked.Local.Tokens, Real: u.Prompt,
		Answer: max(u.Completion-u.Reasoning, 0),
	}
}

// NewMeter returns a meter that has learned nothing.
func NewMeter(models *tokens.Models) *tokens.Meter {
	// The models were given, or are built in, so that there is nothing to fail.
	m, _ := tokens.NewMeter(models)
	return m
}

// Basis is what of it decides how another prompt is accounted for.
func (p Last) Basis() []byte {
	size := func(n int) uint64 { return uint64(n) } //nolint:gosec // none is negative
	to := binary.AppendUvarint(make([]byte, 0, basisBytes*(1+len(p.places)+len(p.marks))), size(len(p.places)))
	for i := range p.places {
		end := &p.places[i]
		to = append(to, end.Sum[:]...)
		for _, n := range []int{end.Tokens, int(end.Bytes), end.Blocks} {
			to = binary.AppendUvarint(to, size(n))
		}
	}
	to = binary.AppendUvarint(to, size(p.settled))
	return fmt.Appendf(to, "%v", p.marks)
}

// basisBytes is about what an end takes in a basis.
const basisBytes = 20

// Trail returns what the session's last prompt began with, nil where it is not known.
func (k *Known) Trail(scope kv.Scope, session string) *render.Trail {
	t, _ := k.trails.Get(sessionKey{scope, session})
	return t
}

// Meter returns the agent's meter.
func (k *Known) Meter(scope kv.Scope) *tokens.Meter {
	return k.meters.GetOrPut(scope, 1, func() *tokens.Meter { return NewMeter(k.Models) })
}

// Forget drops the cache of the prompts of matching scopes.
func (a *Recorder) Forget(match func(kv.Scope) bool) {
	k, of := a.Known, func(s sessionKey) bool { return match(s.scope) }
	k.mu.Lock()
	k.sessions.DeleteFunc(of)
	k.mu.Unlock()
	k.meters.DeleteFunc(match)
	k.trails.DeleteFunc(of)
	k.texts.DeleteFunc(of)
	k.asks.DeleteFunc(of)
	if a.past != nil {
		a.past.ForgetAll(match)
	}
}
