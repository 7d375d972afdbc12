//go:build cgo && !norocksdb

package main

import (
	"context"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"time"

	"google.golang.org/grpc"
	"google.golang.org/protobuf/proto"

	"github.com/loom-bridge/loom-bridge/internal/testkit/contexts"
	loombridgev1 "github.com/loom-bridge/loom-bridge/proto/gen/loombridge/v1"
)

const (
	// promptTokens is the budget of every prompt.
	promptTokens = 32_000
	// promptOutput is the result of each step, in bytes: about the median and
	// more of what coding agents see.
	promptOutput = 1 << 10
	// assembleEvery so many steps a prompt is made while a session is filled, as an agent
	// would, so that folds come in many batches.
	assembleEvery = 2
	// warmPrompts are measured of each length, coldStarts times the server is
	// opened again.
	warmPrompts = 200
	coldStarts  = 5
)

// promptLengths are the steps of the sessions.
var promptLengths = []int{50, 1000, 10_000}

// prompts measures the prompts of sessions of one length.
type prompts struct {
	length int
	// agents have a session each: short sessions do not stay short while they are measured.
	agents []string
	// fresh are prompts right after a new step, again those with nothing new,
	// cold the first ones of a session since the server was opened.
	fresh, again, cold []time.Duration
	// bytes is the size of the whole answer, receipt of its receipt.
	bytes, receipt, tokens int
	folds                  int
}

func newPrompts(length int) *prompts {
	p := &prompts{length: length}
	for i := range max(1, 1000/length) {
		p.agents = append(p.agents, fmt.Sprintf("bench-prompt-%d-%d", length, i))
	}
	return p
}

// assembleTable measures Assemble and prints its own table.
func (b *bench) assembleTable(ctx context.Context) error {
	if !strings.Contains("assemble", b.only) {
		return nil
	}
	all := make([]*prompts, len(promptLengths))
	if err := b.withServer(ctx, "prompts", func(conn *grpc.ClientConn) error {
		client := contexts.New(conn)
		for i, length := range promptLengths {
			all[i] = newPrompts(length)
			if err := all[i].measure(ctx, client); err != nil {
				return fmt.Errorf("bench: prompts of %d steps: %w", length, err)
			}
		}
		return nil
	}); err != nil {
		return err
	}
	var first []time.Duration
	for range coldStarts {
		if err := b.withServer(ctx, "prompts", func(conn *grpc.ClientConn) error {
			client := contexts.New(conn)
			begin := time.Now()
			if _, err := assembled(ctx, client, "bench-prompt-none"); err != nil {
				return err
			}
			first = append(first, time.Since(begin))
			for _, p := range all {
				if err := p.measureCold(ctx, client); err != nil {
					return fmt.Errorf("bench: prompts of %d steps, cold: %w", p.length, err)
				}
			}
			return nil
		}); err != nil {
			return err
		}
	}
	return b.printPrompts(all, sorted(first))
}

func (b *bench) printPrompts(all []*prompts, first sample) error {
	fmt.Fprintf(b.table, "\nAssemble, %d tokens\tsteps\twarm p50 µs\twarm p99 µs\tnothing new p50 µs\tp99 µs\tcold p50 µs\tcold p99 µs\ttokens\tKiB sent\treceipt\tfolds\taim\t\n", promptTokens)
	aims := map[int]string{1000: "warm p99 ≤ 3 ms", 10_000: "warm p50 ≤ 5 ms"}
	for _, p := range all {
		fresh, again, cold := sorted(p.fresh), sorted(p.again), sorted(p.cold)
		fmt.Fprintf(b.table, "\t%d\t%.0f\t%.0f\t%.0f\t%.0f\t%.0f\t%.0f\t%d\t%.1f\t%.1f\t%d\t%s\t\n", p.length,
			p50us(fresh), p99us(fresh), p50us(again), p99us(again), p50us(cold), p99us(cold),
			p.tokens, float64(p.bytes)/1024, float64(p.receipt)/1024, p.folds, aims[p.length])
	}
	if err := b.table.Flush(); err != nil {
		return err
	}
	short, long := all[0], all[1]
	fmt.Printf("Assemble at %d steps takes %.2f times as long as at %d (aim ≤ 1.5); the first call after the server was opened, on an empty session, takes %.1f ms\n",
		long.length, p50us(sorted(long.fresh))/p50us(sorted(short.fresh)), short.length, p50us(first)/1000)
	return nil
}

// withServer runs a server on its own store, which stays.
func (b *bench) withServer(ctx context.Context, name string, use func(*grpc.ClientConn) error) error {
	server, err := start(ctx, b.server, "--addr", "127.0.0.1:0", "--data-dir", filepath.Join(b.folder, name), "--workspace", b.folder, "--log-level", "error", "--embedder", "off")
	if err != nil {
		return err
	}
	defer server.stop()
	all, err := dial(server.addr, 1)
	if err != nil {
		return err
	}
	defer hangUp(all)
	return use(all[0].conn)
}

// measure fills the sessions, then measures a prompt after each further step,
// and once more without one.
func (p *prompts) measure(ctx context.Context, client contexts.Client) error {
	fmt.Fprintf(os.Stderr, "Assemble: filling %d sessions of %d steps\n", len(p.agents), p.length)
	for _, agent := range p.agents {
		for i := range p.length {
			if err := p.record(ctx, client, agent, i); err != nil {
				return err
			}
			if i%assembleEvery == 0 {
				if _, err := assembled(ctx, client, agent); err != nil {
					return err
				}
			}
		}
		for i := range warmPrompts / len(p.agents) {
			if err := p.measureWarm(ctx, client, agent, p.length+i); err != nil {
				return err
			}
		}
	}
	return nil
}

func (p *prompts) measureWarm(ctx context.Context, client contexts.Client, agent string, step int) error {
	if err := p.record(ctx, client, agent, step); err != nil {
		return err
	}
	for _, times := range []*[]time.Duration{&p.fresh, &p.again} {
		begin := time.Now()
		r, err := assembled(ctx, client, agent)
		if err != nil {
			return err
		}
		*times = append(*times, time.Since(begin))
		p.bytes, p.receipt, p.tokens = proto.Size(r), proto.Size(r.GetReceipt()), int(r.GetTokens().GetTokens())
		p.folds = len(r.GetReceipt().GetFolds())
	}
	return nil
}

func (p *prompts) measureCold(ctx context.Context, client contexts.Client) error {
	for _, agent := range p.agents {
		begin := time.Now()
		if _, err := assembled(ctx, client, agent); err != nil {
			return err
		}
		p.cold = append(p.cold, time.Since(begin))
	}
	return nil
}

func (p *prompts) record(ctx context.Context, client contexts.Client, agent string, step int) error {
	_, err := client.RecordStep(ctx, recordRequest(agent, step, promptOutput))
	return err
}

func assembled(ctx context.Context, client contexts.Client, agent string) (*loombridgev1.AssembleResponse, error) {
	return client.Assemble(ctx, &loombridgev1.AssembleRequest{
		AgentId: agent, SessionId: "bench", Goal: "Find out why the tests fail.", System: "You are a careful engineer.",
		MaxTokens: promptTokens,
	}, grpc.MaxCallRecvMsgSize(64<<20))
}

const (
	// promptUser is whose memories prompts find.
	promptUser = "bench-user"
	// userRecords are remembered of the user, and so many more of the other kinds.
	userRecords, knowledgeRecords, playbookRecords, noteRecords, skillRecords = 10_000, 200, 20, 5, 3
	// questionEvery so many prompts the user asks something new.
	questionEvery = 4
)

// injected measures prompts of one length with everything that finds its way into them.
type injected struct {
	length int
	agent  string
	// fresh are prompts right after a new step, empty the answers of the floor of the same
	// size, asked prompts right after a new question of the user, and again those with
	// nothing new.
	fresh, empty, asked, again []time.Duration
	bytes, sections            int
}

// injectedTable measures Assemble with all sources of memory, against an empty call with an
// answer of the same size.
func (b *bench) injectedTable(ctx context.Context) error {
	if !strings.Contains("injected", b.only) {
		return nil
	}
	floors, err := dial(b.floor, 1)
	if err != nil {
		return err
	}
	defer hangUp(floors)
	all := make([]*injected, len(promptLengths))
	if err := b.withServer(ctx, "injected", func(conn *grpc.ClientConn) error {
		if err := b.rememberUser(ctx, loombridgev1.NewMemoryServiceClient(conn), userRecords); err != nil {
			return err
		}
		for i, length := range promptLengths {
			all[i] = &injected{length: length, agent: fmt.Sprintf("bench-injected-%d", length)}
			if err := all[i].measure(ctx, b, contexts.New(conn), contexts.New(floors[0].conn)); err != nil {
				return fmt.Errorf("bench: prompts of %d steps with memory: %w", length, err)
			}
		}
		return nil
	}); err != nil {
		return err
	}
	fmt.Fprintf(b.table, "\nAssemble with %d memories\tsteps\twarm p50 µs\twarm p99 µs\tempty call p50 µs\tp99 µs\tp99 over empty ms\tKiB\tµs/KiB\tnew question p50 µs\tnothing new p50 µs\tsections\taim\t\n", userRecords)
	aims := map[int]string{1000: "p99 over empty ≤ 3 ms"}
	for _, p := range all {
		fresh, empty, kib := sorted(p.fresh), sorted(p.empty), float64(p.bytes)/1024
		fmt.Fprintf(b.table, "\t%d\t%.0f\t%.0f\t%.0f\t%.0f\t%.1f\t%.1f\t%.1f\t%.0f\t%.0f\t%d\t%s\t\n", p.length,
			p50us(fresh), p99us(fresh), p50us(empty), p99us(empty), (p99us(fresh)-p99us(empty))/1000,
			kib, p50us(fresh)/kib, p50us(sorted(p.asked)), p50us(sorted(p.again)), p.sections, aims[p.length])
	}
	if err := b.table.Flush(); err != nil {
		return err
	}
	perKiB := func(p *injected) float64 { return p50us(sorted(p.fresh)) / float64(p.bytes) }
	fmt.Printf("a KiB of prompt takes %.2f times as long at %d steps as at %d (aim ≤ 1.3); what a new question costs at %d steps, the search of memory and what it finds, is %.2f ms (aim ≤ 2)\n",
		perKiB(all[1])/perKiB(all[0]), all[1].length, all[0].length, all[1].length, (p50us(sorted(all[1].asked))-p50us(sorted(all[1].again)))/1000)
	return nil
}

// rememberUser saves what prompts may find of the user, with so many records of no kind.
func (b *bench) rememberUser(ctx context.Context, client loombridgev1.MemoryServiceClient, records int) error {
	const batch = 500
	var drafts []*loombridgev1.MemorySaveRequest
	save := func() error {
		_, err := client.BatchSave(ctx, &loombridgev1.BatchSaveRequest{AgentId: "bench", UserId: promptUser, Records: drafts})
		drafts = drafts[:0]
		return err
	}
	total := records + knowledgeRecords + playbookRecords + noteRecords + skillRecords
	for i := range total {
		draft := &loombridgev1.MemorySaveRequest{Text: b.pool[i%len(b.pool)][:savedBytes/2]}
		metadata := ""
		switch left := total - i; {
		case left <= skillRecords:
			draft.Kind, metadata = "skill", fmt.Sprintf(`{"name":"skill-%d","description":"how to do it"}`, i)
		case left <= skillRecords+noteRecords:
			draft.Kind = "note"
		case left <= skillRecords+noteRecords+playbookRecords:
			draft.Kind = "playbook"
			metadata = fmt.Sprintf(`{"name":"play-%d","description":%q,"status":"approved","tool_sequence":[{"tool":"bash"}],"quality_metrics":{"avg_turns":4,"success_rate":0.9}}`, i, query(draft.Text))
		case left <= skillRecords+noteRecords+playbookRecords+knowledgeRecords:
			draft.Kind = "knowledge"
		}
		if metadata != "" {
			draft.MetadataForm = &loombridgev1.MemorySaveRequest_MetadataJson{MetadataJson: metadata}
		}
		if drafts = append(drafts, draft); len(drafts) == batch || i+1 == total {
			if err := save(); err != nil {
				return fmt.Errorf("bench: save memories: %w", err)
			}
		}
	}
	return nil
}

// measure fills the session, then measures a prompt after each further step.
func (p *injected) measure(ctx context.Context, b *bench, client, floor contexts.Client) error {
	fmt.Fprintf(os.Stderr, "Assemble with memory: filling a session of %d steps\n", p.length)
	for i := range p.length {
		if _, err := client.RecordStep(ctx, recordRequest(p.agent, i, promptOutput)); err != nil {
			return err
		}
		if i%assembleEvery == 0 {
			if _, err := p.timed(ctx, client, nil); err != nil {
				return err
			}
		}
	}
	for i := range warmPrompts {
		if i%questionEvery == 0 {
			if err := p.ask(ctx, client, query(b.pool[(p.length+i)%len(b.pool)])+"?"); err != nil {
				return err
			}
		}
		if _, err := client.RecordStep(ctx, recordRequest(p.agent, p.length+i, promptOutput)); err != nil {
			return err
		}
		size, err := p.timed(ctx, client, &p.fresh)
		if err != nil {
			return err
		}
		begin := time.Now()
		if _, err := floor.Assemble(ctx, &loombridgev1.AssembleRequest{MaxTokens: int32(size)}); err != nil { //nolint:gosec // far below
			return err
		}
		p.empty = append(p.empty, time.Since(begin))
	}
	return nil
}

// ask has the user ask something new, and measures the prompt for it and the next one.
func (p *injected) ask(ctx context.Context, client contexts.Client, question string) error {
	_, err := client.AppendMessages(ctx, &loombridgev1.AppendMessagesRequest{
		AgentId: p.agent, SessionId: "bench", Messages: []*loombridgev1.Message{{Role: loombridgev1.Role_ROLE_USER, Content: question}},
	})
	for _, times := range []*[]time.Duration{&p.asked, &p.again} {
		if err == nil {
			_, err = p.timed(ctx, client, times)
		}
	}
	return err
}

// timed makes a prompt with all sources, and returns the size of the answer.
func (p *injected) timed(ctx context.Context, client contexts.Client, times *[]time.Duration) (int, error) {
	begin := time.Now()
	r, err := p.assemble(ctx, client)
	if err != nil || times == nil {
		return 0, err
	}
	*times = append(*times, time.Since(begin))
	p.bytes, p.sections = proto.Size(r), len(r.GetReceipt().GetSections())
	return p.bytes, nil
}

func (p *injected) assemble(ctx context.Context, client contexts.Client) (*loombridgev1.AssembleResponse, error) {
	return client.Assemble(ctx, &loombridgev1.AssembleRequest{
		AgentId: p.agent, SessionId: "bench", Goal: "Find out why the tests fail.", System: "You are a careful engineer.",
		MaxTokens: promptTokens, Settings: &loombridgev1.PromptSettings{UserId: promptUser},
	}, grpc.MaxCallRecvMsgSize(64<<20))
}
