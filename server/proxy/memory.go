package proxy

import (
	"context"
	"crypto/sha256"
	"slices"
	"strings"
	"sync/atomic"
	"time"

	"google.golang.org/grpc"

	"github.com/loom-bridge/loom-bridge/context/content"
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
	// keptBytes bounds the memory that is kept to be added to the same messages again, and
	// keptBeside is about what one takes besides its text.
	keptBytes, keptBeside = 32 << 20, 128
)

// memories adds what memory has to what the user says. A text that was added to a message is
// added to it again with each request that says the message again, so that what the provider
// has cached of a conversation stays the same. It is safe for concurrent use.
type memories struct {
	prompts loombridgev1.PromptServiceClient
	// kept is by the conversation up to the message. Another one takes its place to forget, so
	// that what was asked before is not kept after.
	kept atomic.Pointer[cache.Cache[mark, remembered]]
}

// remembered is what memory has for a message; empty for nothing.
type remembered struct {
	text    string
	records int
}

func newMemories(within grpc.ClientConnInterface) *memories {
	m := &memories{prompts: loombridgev1.NewPromptServiceClient(within)}
	m.forget()
	return m
}

func (m *memories) forget() { m.kept.Store(cache.New[mark, remembered](keptBytes)) }

// memorySettings are those of prompts that are made of memory alone.
var memorySettings = &loombridgev1.PromptSettings{
	Tools: &loombridgev1.ToolSelection{None: true},
	Sources: &loombridgev1.SourceSettings{Exclude: []string{
		"skills", "few_shot", "notes", "tasks", "events", "messages", "playbook", "plan", "progress", "errors", "rehydrated", "goal",
	}},
}

// add returns the body of a request with what memory has for its user's messages, and how many
// records it says for the newest of them.
func (m *memories) add(ctx context.Context, p place, d dialect, t *talk, body []byte) (out []byte, records int) {
	kept := m.kept.Load()
	var asked []int
	chain := mark(sha256.Sum256([]byte(p.key(t.previous))))
	chains := make([]mark, len(t.items))
	for i := range t.items {
		chain = sha256.Sum256(append(chain[:], t.items[i].mark[:]...))
		chains[i] = chain
		if saidBy(t.items[i].message) != "" {
			asked = append(asked, i)
		}
	}
	// From the end, so that what stands before stays where it is.
	for n, i := range slices.Backward(asked) {
		found, known := kept.Get(chains[i])
		if newest := n == len(asked)-1; newest && !known {
			var err error
			if found, err = m.find(ctx, p, t.model, saidBy(t.items[i].message)); err == nil {
				kept.Put(chains[i], found, len(found.text)+keptBeside)
			}
		}
		if found.text == "" {
			continue
		}
		more, ok := d.addText(body, t.items[i].at, found.text)
		if body = more; ok && n == len(asked)-1 {
			records = found.records
		}
	}
	return body, records
}

// saidBy is what a message of the user says, and nothing of others.
func saidBy(m *loombridgev1.Message) string {
	if m.GetRole() != loombridgev1.Role_ROLE_USER {
		return ""
	}
	said := m.GetContent()
	for _, b := range content.Parse([]byte(m.GetBlocksJson())) {
		if b.Kind == content.Text {
			said += b.Text + "\n"
		}
	}
	return strings.TrimSpace(said)
}

// find looks for what fits a message.
func (m *memories) find(ctx context.Context, p place, model, said string) (found remembered, err error) {
	ctx, cancel := context.WithTimeout(ctx, memoryTime)
	defer cancel()
	if len(model) > maxModelBytes {
		model = ""
	}
	// A session without entries: what it says is memory alone. A dry run keeps nothing of it.
	prompt, err := m.prompts.Assemble(ctx, &loombridgev1.AssembleRequest{
		AgentId: p.agent, SessionId: "proxy-memory", Goal: text.Head(said, maxAskBytes), Model: model, DryRun: true, WithoutTools: true, Settings: memorySettings,
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
			found.records += len(s.GetRefs())
		}
	}
	if found.records > 0 {
		found.text = strings.Join(texts, "\n\n")
	}
	return found, nil
}
