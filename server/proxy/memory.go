package proxy

import (
	"context"
	"crypto/sha256"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"google.golang.org/grpc"

	"github.com/loom-bridge/loom-bridge/context/text"
	"github.com/loom-bridge/loom-bridge/memory/kv/cache"
	loombridgev1 "github.com/loom-bridge/loom-bridge/proto/gen/loombridge/v1"
)

const (
	// memoryTime is how long a request waits for memory before it goes without. It takes
	// milliseconds, but for the first one of a server, which reads a vocabulary.
	memoryTime = 5 * time.Second
	// maxAskBytes bounds what is looked for in memory of what the user says.
	maxAskBytes = 16 << 10
	// maxModelBytes is the native API's limit of the name of a model.
	maxModelBytes = 128
	// keptBeside is about what memory that is kept to be added to the same message again takes
	// besides its text.
	keptBeside = 128
	// refBytes is about what the name of a record takes.
	refBytes = 48
)

// memories adds what memory has to what the user says. A text that was added to a message is
// added to it again with each request that says the message again, so that what the provider
// has cached of a conversation stays the same. It is safe for concurrent use.
type memories struct {
	prompts loombridgev1.PromptServiceClient
	// kept is by the conversation up to the message. Another one takes its place to forget, so
	// that what was asked before is not kept after.
	kept atomic.Pointer[cache.Cache[mark, remembered]]

	mu      sync.RWMutex      // guards the fields below
	times   uint64            // how often remove was called
	removed map[string]uint64 // which of these times was the last, by the id of a record
}

// maxRemoved is how many records may be removed before all that is kept is forgotten instead.
const maxRemoved = 10_000

// remembered is what memory has for a message; empty for nothing.
type remembered struct {
	text    string
	records []string // what names them
	tokens  int32
	at      uint64 // how often records had been removed before it was asked for
}

func newMemories(within grpc.ClientConnInterface) *memories {
	m := &memories{prompts: loombridgev1.NewPromptServiceClient(within)}
	m.forget()
	return m
}

func (m *memories) forget() { m.kept.Store(cache.New[mark, remembered](keptBytes)) }

// remove notes that records say no more what they said: no request does any more, either.
func (m *memories) remove(ids []string) {
	m.mu.Lock()
	defer m.mu.Unlock()
	if m.removed == nil || len(m.removed)+len(ids) > maxRemoved {
		m.removed = make(map[string]uint64)
		m.forget()
	}
	m.times++
	if len(ids) > maxRemoved {
		return
	}
	for _, id := range ids {
		m.removed[id] = m.times
	}
}

// stands reports whether all records still say what they said.
func (m *memories) stands(found remembered) bool {
	m.mu.RLock()
	defer m.mu.RUnlock()
	return !slices.ContainsFunc(found.records, func(ref string) bool {
		return m.removed[ref[strings.LastIndexByte(ref, ':')+1:]] > found.at // "user:" stands before an id of the user's
	})
}

// modelOf is the name of a model as the native API takes it.
func modelOf(name string) string {
	if len(name) > maxModelBytes {
		return ""
	}
	return name
}

// memorySettings are those of prompts that are made of memory alone.
var memorySettings = &loombridgev1.PromptSettings{
	Tools: &loombridgev1.ToolSelection{None: true},
	Sources: &loombridgev1.SourceSettings{Exclude: []string{
		"skills", "few_shot", "notes", "tasks", "events", "messages", "playbook", "plan", "progress", "errors", "rehydrated", "goal",
	}},
}

// addition is a text behind what the user says in an element of a request.
type addition struct {
	at   int // negative where the conversation is a text itself
	text string
}

// recalled is what memory has for a request.
type recalled struct {
	added   []addition // in order
	records int        // of the newest
	tokens  int32      // of all
}

// find returns what memory has for the messages of the user.
func (m *memories) find(ctx context.Context, p place, t *talk) (all recalled) {
	kept := m.kept.Load()
	newest := len(t.items) - 1
	for newest >= 0 && !t.items[newest].asks {
		newest--
	}
	chain := mark(sha256.Sum256([]byte(p.key(t.previous))))
	for i := range t.items[:newest+1] {
		it := &t.items[i]
		chain = chain.with(it.mark)
		if !it.asks {
			continue
		}
		found, known := kept.Get(chain)
		if known && !m.stands(found) {
			found, known = remembered{}, false
		}
		// What memory has may have changed since another conversation began with the same words;
		// while the model answers a message by its tools, it stays as it was.
		if i == newest && (!known || i == len(t.items)-1) {
			if now, err := m.ask(ctx, p, t.model, saidBy(it.message)); err == nil {
				found = now
				kept.Put(chain, found, len(found.text)+refBytes*len(found.records)+keptBeside)
			}
		}
		if found.text == "" {
			continue
		}
		all.added = append(all.added, addition{it.from, found.text})
		all.tokens += found.tokens
		if i == newest {
			all.records = len(found.records)
		}
	}
	return all
}

// ask looks for what fits a message.
func (m *memories) ask(ctx context.Context, p place, model, said string) (found remembered, err error) {
	ctx, cancel := context.WithTimeout(ctx, memoryTime)
	defer cancel()
	m.mu.RLock()
	found.at = m.times
	m.mu.RUnlock()
	// A session without entries: what it says is memory alone. A dry run keeps nothing of it.
	prompt, err := m.prompts.Assemble(ctx, &loombridgev1.AssembleRequest{
		AgentId: p.agent, SessionId: "proxy-memory", Goal: text.Head(said, maxAskBytes), Model: modelOf(model), DryRun: true, WithoutTools: true, Settings: memorySettings,
	})
	if err != nil {
		return remembered{}, err
	}
	var texts []string
	for _, message := range prompt.GetMessages() {
		if message.GetRole() == loombridgev1.Role_ROLE_USER && message.GetContent() != "" {
			texts = append(texts, message.GetContent())
		}
	}
	for _, s := range prompt.GetReceipt().GetSections() {
		if s.GetTokens() > 0 {
			found.records = append(found.records, s.GetRefs()...)
			found.tokens += s.GetTokens()
		}
	}
	if len(found.records) > 0 {
		found.text = strings.Join(texts, "\n\n")
	}
	return found, nil
}
