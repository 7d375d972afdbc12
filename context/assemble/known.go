package assemble

import (
	"crypto/sha256"
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
	// maxTexts bounds the text of last prompts, in bytes: those of some hundred sessions.
	// What is not known of one is only where the next prompt differs from it.
	maxTexts = 32 << 20
	// maxAgents bounds the agents whose ratios are known.
	maxAgents = 1 << 10
)

// known is what an assembler remembers of the prompts it made. All methods are
// safe for concurrent use.
type known struct {
	models *tokens.Models

	mu       sync.Mutex // guards the fields below
	sessions *cache.LRU[sessionKey, lastPrompt]
	// meters has one for each agent, so that none spoils another's ratio.
	meters *cache.LRU[kv.Scope, *tokens.Meter]
	sets   *cache.LRU[[sha256.Size]byte, toolset]
	trails *cache.LRU[sessionKey, *render.Trail]
	// texts are the messages of sessions' last prompts.
	texts *cache.LRU[sessionKey, lastTexts]
	// asks are how often sessions asked for what had been folded away.
	asks *cache.LRU[sessionKey, asked]
}

type sessionKey struct {
	scope   kv.Scope
	session string
}

// lastPrompt is the last prompt of a session, and what was asked of those
// before it.
type lastPrompt struct {
	// kind is whose cache it went to, total what its receipt said that it takes.
	kind  promptKind
	total int
	// places are the ends of its tools and messages, head how many of them stand
	// before the history.
	places []render.End
	head   int
	// settled is what it had before its goal with nothing folded.
	settled int
	// pressure is that of its receipt, free what it left of the window.
	pressure float64
	free     int
	// account says what takes most of it, for a report that it was refused.
	account OverflowError
	// marks are its cache marks.
	marks []provider.Mark
	sent  []sentPrompt
	// others are the last prompts of other kinds, the newest first.
	others []lastPrompt
}

// promptKind is what prompts have in common that can share a provider's cache.
type promptKind struct {
	model  string
	format Format
}

// of is the session's last prompt of a kind; the zero one when it is not known.
func (p lastPrompt) of(kind promptKind) lastPrompt {
	if p.kind == kind {
		return p
	}
	at := slices.IndexFunc(p.others, func(o lastPrompt) bool { return o.kind == kind })
	if at < 0 {
		return lastPrompt{}
	}
	return p.others[at]
}

// sentPrompt is a prompt that usage may be reported for.
type sentPrompt struct {
	asked     tokens.Prompt
	last      tokens.Anchor
	predicted int
	stable    int
	// usage is what was reported of it and taught something; the zero Usage is
	// none.
	usage tokens.Usage
	// outdated says in a report's answer that a newer prompt was reported.
	outdated bool
}

func newKnown(models *tokens.Models) *known {
	return &known{
		models:   models,
		sessions: cache.NewLRU[sessionKey, lastPrompt](maxSessions),
		meters:   cache.NewLRU[kv.Scope, *tokens.Meter](maxAgents),
		sets:     cache.NewLRU[[sha256.Size]byte, toolset](maxToolsets),
		trails:   cache.NewLRU[sessionKey, *render.Trail](render.MaxTrails),
		texts:    cache.NewLRU[sessionKey, lastTexts](maxTexts),
		asks:     cache.NewLRU[sessionKey, asked](maxSessions),
	}
}

// Forget drops what the assembler remembers of the prompts of scopes that somebody has
// erased, or whose prompts showed what was.
func (a *Assembler) Forget(match func(kv.Scope) bool) {
	a.known.forget(match)
	a.source.Forget(match)
	a.folds.Forget(match)
	if a.gatherer != nil {
		a.gatherer.Forget(match)
	}
	if a.past != nil {
		a.past.ForgetAll(match)
	}
}

func (k *known) forget(match func(kv.Scope) bool) {
	k.mu.Lock()
	defer k.mu.Unlock()
	of := func(s sessionKey) bool { return match(s.scope) }
	k.sessions.DeleteFunc(of)
	k.meters.DeleteFunc(match)
	k.trails.DeleteFunc(of)
	k.texts.DeleteFunc(of)
	k.asks.DeleteFunc(of)
}

// tools returns a toolset that was kept.
func (k *known) tools(key [sha256.Size]byte) (toolset, bool) {
	k.mu.Lock()
	defer k.mu.Unlock()
	return k.sets.Get(key)
}

func (k *known) keepTools(key [sha256.Size]byte, set toolset) {
	k.mu.Lock()
	defer k.mu.Unlock()
	k.sets.Put(key, set, 1)
}

// trail returns what the session's last prompt began with, nil where it is not
// known.
func (k *known) trail(scope kv.Scope, session string) *render.Trail {
	k.mu.Lock()
	defer k.mu.Unlock()
	t, _ := k.trails.Get(sessionKey{scope, session})
	return t
}

func (k *known) leave(scope kv.Scope, session string, t *render.Trail) {
	k.mu.Lock()
	defer k.mu.Unlock()
	k.trails.Put(sessionKey{scope, session}, t, 1)
}

// last returns the session's last prompt; the zero one when it is not known.
// What it holds is never changed.
func (k *known) last(scope kv.Scope, session string) lastPrompt {
	k.mu.Lock()
	defer k.mu.Unlock()
	p, _ := k.sessions.Get(sessionKey{scope, session})
	return p
}

// remember makes p the session's last prompt.
func (k *known) remember(scope kv.Scope, session string, p lastPrompt, sent sentPrompt) {
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
		others = append([]lastPrompt{before}, others...)
	}
	p.others = slices.DeleteFunc(slices.Clone(others), func(o lastPrompt) bool { return o.kind == p.kind })
	p.others = p.others[:min(len(p.others), maxKinds-1)]
	k.sessions.Put(key, p, 1+len(p.others))
}

// report returns the prompt with an id, and notes usage that was reported for it
// and is believed. What was noted before is in its usage.
func (k *known) report(scope kv.Scope, session, id string, u tokens.Usage) (sent sentPrompt, ok bool) {
	k.mu.Lock()
	defer k.mu.Unlock()
	p, _ := k.sessions.Get(sessionKey{scope, session})
	at := slices.IndexFunc(p.sent, func(s sentPrompt) bool { return s.asked.ID == id })
	if at < 0 {
		return sentPrompt{}, false
	}
	sent = p.sent[at]
	sent.outdated = slices.ContainsFunc(p.sent[at+1:], func(s sentPrompt) bool { return s.usage != (tokens.Usage{}) })
	if believed(sent.anchor(u)) {
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

// meter returns the agent's meter.
func (k *known) meter(scope kv.Scope) *tokens.Meter {
	k.mu.Lock()
	defer k.mu.Unlock()
	m, ok := k.meters.Get(scope)
	if !ok {
		m = newMeter(k.models)
		k.meters.Put(scope, m, 1)
	}
	return m
}

// newMeter returns a meter that has learned nothing.
func newMeter(models *tokens.Models) *tokens.Meter {
	// The models were given, or are built in, so that there is nothing to fail.
	m, _ := tokens.NewMeter(models)
	return m
}

// tokens is what the prompt took.
func (p lastPrompt) tokens() int {
	if len(p.places) == 0 {
		return 0
	}
	return p.places[len(p.places)-1].Tokens
}

// asked returns how often a session asked for what had been folded away.
func (k *known) asked(scope kv.Scope, session string) (asked, bool) {
	k.mu.Lock()
	defer k.mu.Unlock()
	return k.asks.Get(sessionKey{scope, session})
}

func (k *known) ask(scope kv.Scope, session string, a asked) {
	k.mu.Lock()
	defer k.mu.Unlock()
	k.asks.Put(sessionKey{scope, session}, a, 1)
}

// lastTexts returns the messages of a session's last prompt.
func (k *known) lastTexts(scope kv.Scope, session string) (lastTexts, bool) {
	k.mu.Lock()
	defer k.mu.Unlock()
	return k.texts.Get(sessionKey{scope, session})
}

func (k *known) keepTexts(scope kv.Scope, session string, texts lastTexts, bytes int) {
	k.mu.Lock()
	defer k.mu.Unlock()
	k.texts.Put(sessionKey{scope, session}, texts, bytes)
}
