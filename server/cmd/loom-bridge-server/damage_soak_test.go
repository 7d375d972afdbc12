package main

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"maps"
	"math/rand/v2"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"syscall"
	"testing"
	"time"

	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"

	"github.com/loom-bridge/loom-bridge/internal/testkit/chance"
	"github.com/loom-bridge/loom-bridge/internal/testkit/contexts"
	loombridgev1 "github.com/loom-bridge/loom-bridge/proto/gen/loombridge/v1"
)

// harmed are the files that are damaged, by the forms of their names.
var harmed = []string{"*.log", "*.sst", "*.blob", "MANIFEST-*", "CURRENT", "LOOM-MARK", "LOOM-FORMAT"}

// harms are the ways in which a file of some bytes is damaged. They return what is
// left; nil: not even the file.
var harms = map[string]func(random *rand.Rand, data []byte) []byte{
	"bit flipped": func(random *rand.Rand, data []byte) []byte {
		data = bytes.Clone(data)
		data[random.IntN(len(data))] ^= 1 << random.IntN(8)
		return data
	},
	"4 KiB zeroed": func(random *rand.Rand, data []byte) []byte {
		data = bytes.Clone(data)
		const page = 4 << 10
		at := random.IntN((len(data)+page-1)/page) * page
		clear(data[at:min(at+page, len(data))])
		return data
	},
	"cut":     func(random *rand.Rand, data []byte) []byte { return append([]byte{}, data[:random.IntN(len(data))]...) },
	"deleted": func(*rand.Rand, []byte) []byte { return nil },
}

// TestSoakDamage damages one file of a store that a server has left, killed or stopped,
// and starts the server on it again: it refuses to, or says at each read that the store
// is damaged, or all that was acknowledged is there; and what it passes over, check
// finds. Nothing is silently less.
func TestSoakDamage(t *testing.T) {
	t.Parallel()
	rounds := soakRoundsOr(t, 0)
	seed := chance.Seed(t)
	d := &damageSoak{binary: mustBuild(t), random: rand.New(rand.NewPCG(seed, 0))}
	d.makeVictims(t, rounds > 0)
	for _, v := range d.victims {
		d.mustBeWhole(t, v)
	}
	for _, form := range harmed {
		t.Run(strings.Trim(form, "*.-"), func(t *testing.T) {
			ways := slices.Sorted(maps.Keys(harms))
			if rounds == 0 {
				ways = ways[d.random.IntN(len(ways)):][:1]
			}
			for _, harm := range ways {
				d.harm(t, form, harm, max(rounds, 1))
			}
		})
	}
}

// harm damages files of a form in one way, again and again.
func (d *damageSoak) harm(t *testing.T, form, harm string, rounds int) {
	t.Helper()
	var all damageOutcome
	for round := range rounds {
		d.round(t, &all, d.victim(form, round), form, harm)
	}
	t.Logf("%-11s %-12s %3d rounds: %3d refused at open, %3d reported at read, %3d found by check, %3d harmless, %d silently less",
		form, harm, rounds, all.refused, all.reported, all.found, all.harmless, all.silent)
}

// damageOutcome counts what became of damaged stores. Each one was refused, or was
// found by check, or was harmless; reads reported some of those found.
type damageOutcome struct{ refused, reported, found, harmless, silent int }

// damageSoak damages copies of stores.
type damageSoak struct {
	binary  string
	random  *rand.Rand
	victims []*damageVictim
}

// damageVictim is the directory of a store that no server has open, and what was
// acknowledged to those who filled it.
type damageVictim struct {
	name  string
	files map[string]string // by name
	acked []ackedRead
}

// ackedRead is a read whose answer is known, because what it reads was acknowledged.
type ackedRead struct {
	what string
	want string
	read func(ctx context.Context, conn *grpc.ClientConn) (string, error)
}

// makeVictims fills stores through a server: one that is killed after two good ends,
// the same stopped, and, if large is set, one whose data lie in several logs.
func (d *damageSoak) makeVictims(t *testing.T, large bool) {
	t.Helper()
	dir := t.TempDir()
	f := &filler{random: d.random}
	for range 2 { // what the next start writes to tables and blob files
		c := d.fill(t, f, dir)
		must(t, c.Process.Signal(syscall.SIGTERM))
		must(t, c.Wait())
	}
	c := d.fill(t, f, dir)
	must(t, c.Process.Kill())
	_ = c.Wait()
	d.victims = append(d.victims, f.victim(t, "killed", dir))
	c = d.fill(t, f, dir)
	must(t, c.Process.Signal(syscall.SIGTERM))
	must(t, c.Wait())
	d.victims = append(d.victims, f.victim(t, "stopped", dir))
	if !large {
		return
	}
	c = MustStartChild(t, dir)
	conn := MustDial(t, c.Address)
	for range 4 {
		f.upload(t, conn, 24<<20)
		f.records(t, conn)
	}
	f.lists(t, conn)
	must(t, c.Process.Kill())
	_ = c.Wait()
	d.victims = append(d.victims, f.victim(t, "large", dir))
}

// fill starts a server and stores something of every sort.
func (d *damageSoak) fill(t *testing.T, f *filler, dir string) *child {
	t.Helper()
	c := MustStartChild(t, dir)
	conn := MustDial(t, c.Address)
	f.records(t, conn)
	f.steps(t, conn)
	f.upload(t, conn, 3<<20)
	f.messages(t, conn)
	f.events(t, conn)
	f.lists(t, conn)
	return c
}

// filler stores through a server's RPCs, and notes what was acknowledged.
type filler struct {
	random *rand.Rand
	count  int
	sent   []string    // payloads of events
	acked  []ackedRead // of what has a name of its own
	listed []ackedRead // of everything; the last ones only
}

const (
	damageAgent   = "filler"
	damageTopic   = "filled"
	damageRecords = 12
	damageSteps   = 8
	damageOthers  = 10 // messages, and events
)

// text is of any length up to most, of letters that pack a little.
func (f *filler) text(most int) string {
	text := make([]byte, 1+f.random.IntN(most))
	for i := range text {
		text[i] = 'a' + byte(f.random.Uint32N(24))
	}
	return string(text)
}

func (f *filler) note(what, want string, read func(context.Context, *grpc.ClientConn) (string, error)) {
	f.acked = append(f.acked, ackedRead{what, want, read})
}

// records saves memories, which come back by id, by key and by a word of their own.
func (f *filler) records(t *testing.T, conn *grpc.ClientConn) {
	t.Helper()
	for range damageRecords {
		f.count++
		key, word := fmt.Sprint("key", f.count), fmt.Sprintf("marker%dx", f.count)
		text := word + " " + f.text(6000)
		saved, err := loombridgev1.NewBridgeServiceClient(conn).MemorySave(t.Context(), &loombridgev1.MemorySaveRequest{AgentId: damageAgent, Key: key, Text: text})
		must(t, err)
		id := saved.GetId()
		f.note("record "+id, text, func(ctx context.Context, conn *grpc.ClientConn) (string, error) {
			got, err := loombridgev1.NewMemoryServiceClient(conn).GetRecord(ctx, &loombridgev1.GetRecordRequest{AgentId: damageAgent, Name: &loombridgev1.GetRecordRequest_Id{Id: id}})
			return got.GetText(), err
		})
		f.note(key, text, func(ctx context.Context, conn *grpc.ClientConn) (string, error) {
			got, err := loombridgev1.NewMemoryServiceClient(conn).GetRecord(ctx, &loombridgev1.GetRecordRequest{AgentId: damageAgent, Name: &loombridgev1.GetRecordRequest_Key{Key: key}})
			return got.GetText(), err
		})
		f.note("the word "+word, id, func(ctx context.Context, conn *grpc.ClientConn) (string, error) {
			got, err := loombridgev1.NewBridgeServiceClient(conn).MemoryQuery(ctx, &loombridgev1.MemoryQueryRequest{AgentId: damageAgent, Query: word})
			if err != nil || len(got.GetHits()) != 1 {
				return fmt.Sprintf("%d hits", len(got.GetHits())), err
			}
			return got.GetHits()[0].GetRecord().GetId(), nil
		})
	}
}

// steps records results of a few bytes to some chunks.
func (f *filler) steps(t *testing.T, conn *grpc.ClientConn) {
	t.Helper()
	for range damageSteps {
		output := f.text([]int{20, 2000, 20_000, 200_000}[f.random.IntN(4)])
		got, err := contexts.New(conn).RecordStep(t.Context(), &loombridgev1.RecordStepRequest{
			AgentId: damageAgent, ToolName: "my.tool", Success: true,
			OutputForm: &loombridgev1.RecordStepRequest_OutputText{OutputText: output},
		})
		must(t, err)
		f.readable(got.GetStep().GetId(), output)
	}
}

// readable notes what a name of a result leads to.
func (f *filler) readable(name, want string) {
	f.note(name, want, func(ctx context.Context, conn *grpc.ClientConn) (string, error) {
		_, got, err := readAll(ctx, contexts.New(conn), &loombridgev1.ReadBlobRequest{AgentId: damageAgent, Name: name}, len(want))
		return string(got), err
	})
}

// upload records a result of some bytes, part by part.
func (f *filler) upload(t *testing.T, conn *grpc.ClientConn, size int) {
	t.Helper()
	seed := f.random.Uint64()
	id, err := uploadNoise(t.Context(), conn, seed, size)
	must(t, err)
	f.readable(id, string(noise(seed, size)))
}

func (f *filler) messages(t *testing.T, conn *grpc.ClientConn) {
	t.Helper()
	for range damageOthers {
		content := f.text(9000)
		got, err := contexts.New(conn).AppendMessages(t.Context(), &loombridgev1.AppendMessagesRequest{
			AgentId: damageAgent, Messages: []*loombridgev1.Message{{Role: loombridgev1.Role_ROLE_USER, Content: content}},
		})
		must(t, err)
		f.readable(fmt.Sprintf("message_%03d", got.GetPositions()[0]), content)
	}
}

func (f *filler) events(t *testing.T, conn *grpc.ClientConn) {
	t.Helper()
	for range damageOthers {
		payload := f.text(9000)
		_, err := loombridgev1.NewBridgeServiceClient(conn).Emit(t.Context(), &loombridgev1.EmitRequest{
			AgentId: damageAgent, Topic: damageTopic, PayloadForm: &loombridgev1.EmitRequest_PayloadBytes{PayloadBytes: []byte(payload)},
		})
		must(t, err)
		f.sent = append(f.sent, payload)
	}
}

// lists notes how whole listings, and the prompt, read at the moment.
func (f *filler) lists(t *testing.T, conn *grpc.ClientConn) {
	t.Helper()
	sent := len(f.sent)
	f.listed = []ackedRead{
		{what: "the events", read: func(ctx context.Context, conn *grpc.ClientConn) (string, error) { return readEvents(ctx, conn, sent) }},
		{what: "the list of records", read: listRecords},
		{what: "the list of steps", read: listSteps},
		{what: "the prompt", read: assembled},
	}
	f.listed[0].want = strings.Join(f.sent, "\n")
	for i := range f.listed[1:] {
		want, err := f.listed[1+i].read(t.Context(), conn)
		must(t, err)
		f.listed[1+i].want = want
	}
}

func readEvents(ctx context.Context, conn *grpc.ClientConn, count int) (string, error) {
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	var first int64
	stream, err := loombridgev1.NewEventServiceClient(conn).Subscribe(ctx, &loombridgev1.SubscribeRequest{
		AgentId: damageAgent, Topics: []*loombridgev1.TopicPosition{{Topic: damageTopic, AfterSequence: &first}},
	})
	var payloads []string
	for err == nil && len(payloads) < count {
		var message *loombridgev1.SubscribeResponse
		if message, err = stream.Recv(); err == nil && message.GetEvent() != nil {
			payloads = append(payloads, string(message.GetEvent().GetPayloadBytes()))
		}
	}
	return strings.Join(payloads, "\n"), err
}

func listRecords(ctx context.Context, conn *grpc.ClientConn) (string, error) {
	var all strings.Builder
	request := &loombridgev1.ListRecordsRequest{AgentId: damageAgent, PageSize: 500}
	for {
		page, err := loombridgev1.NewMemoryServiceClient(conn).ListRecords(ctx, request)
		if err != nil {
			return all.String(), err
		}
		for _, r := range page.GetRecords() {
			all.WriteString(r.GetId() + " " + r.GetText() + "\n")
		}
		if request.PageToken = page.GetNextPageToken(); request.PageToken == "" {
			return all.String(), nil
		}
	}
}

func listSteps(ctx context.Context, conn *grpc.ClientConn) (string, error) {
	var all strings.Builder
	request := &loombridgev1.ListStepsRequest{AgentId: damageAgent, PageSize: 1000}
	for {
		page, err := contexts.New(conn).ListSteps(ctx, request)
		if err != nil {
			return all.String(), err
		}
		for _, s := range page.GetSteps() {
			all.WriteString(s.GetId() + " " + s.GetObservation() + "\n")
		}
		if request.PageToken = page.GetNextPageToken(); request.PageToken == "" {
			return all.String(), nil
		}
	}
}

func assembled(ctx context.Context, conn *grpc.ClientConn) (string, error) {
	got, err := contexts.New(conn).Assemble(ctx, &loombridgev1.AssembleRequest{
		AgentId: damageAgent, Goal: "Go on.", MaxTokens: 120_000, WithoutTools: true, DryRun: true,
	})
	var all strings.Builder
	for _, m := range got.GetMessages() {
		all.WriteString(m.GetRole().String() + " " + m.GetContent() + "\n")
	}
	return all.String(), err
}

// victim takes the files away that a server has left.
func (f *filler) victim(t *testing.T, name, dir string) *damageVictim {
	t.Helper()
	v := &damageVictim{name: name, files: filesIn(t, filepath.Join(dir, "store"))}
	v.acked = append(slices.Clone(f.acked), f.listed...)
	count := func(form string) int { return len(v.named(form)) }
	t.Logf("%s: %d logs of %d KiB, %d tables, %d blob files, %d reads", name, count("*.log"), v.bytes("*.log")>>10, count("*.sst"), count("*.blob"), len(v.acked))
	return v
}

// named returns the names of the victim's files that have a form, in order.
func (v *damageVictim) named(form string) []string {
	var names []string
	for name, data := range v.files {
		if ok, _ := filepath.Match(form, name); ok && data != "" {
			names = append(names, name)
		}
	}
	slices.Sort(names)
	return names
}

func (v *damageVictim) bytes(form string) (total int) {
	for _, name := range v.named(form) {
		total += len(v.files[name])
	}
	return total
}

// victim chooses the store for a round. The large one is for logs only, which the
// others have but one of.
func (d *damageSoak) victim(form string, round int) *damageVictim {
	if form == "*.log" {
		return d.victims[round%len(d.victims)]
	}
	return d.victims[round%2]
}

// lay writes the victim's files to a new directory, one of them replaced, or left out
// for nil.
func (v *damageVictim) lay(t *testing.T, name string, data []byte) string {
	t.Helper()
	dir := t.TempDir()
	for file, whole := range v.files {
		if file == name {
			whole = string(data)
		}
		if path := filepath.Join(dir, file); file != name || data != nil {
			must(t, os.MkdirAll(filepath.Dir(path), 0o700))
			must(t, os.WriteFile(path, []byte(whole), 0o600))
		}
	}
	return dir
}

// mustBeWhole shows that all was acknowledged, and comes back from an undamaged store.
func (d *damageSoak) mustBeWhole(t *testing.T, v *damageVictim) {
	t.Helper()
	var all damageOutcome
	dir := v.lay(t, "", nil)
	defer os.RemoveAll(dir)
	if said, err := exec.Command(d.binary, "check", "--data-dir", dir).CombinedOutput(); err != nil {
		t.Fatalf("%s: check: %v\n%s", v.name, err, said)
	}
	refused, reads := d.open(t, v, dir)
	all.add(reads)
	if refused != "" || all.reported+all.silent > 0 {
		t.Fatalf("%s, undamaged: refused %q, %v", v.name, refused, reads)
	}
}

// damageReads are the reads of a store that did not answer what was acknowledged:
// those that said that the store is damaged, and all others.
type damageReads struct{ reported, silent []string }

func (o *damageOutcome) add(reads damageReads) {
	if len(reads.silent) > 0 {
		o.silent++
	} else if len(reads.reported) > 0 {
		o.reported++
	}
}

// round damages one file, checks the store, and starts a server on it.
func (d *damageSoak) round(t *testing.T, all *damageOutcome, v *damageVictim, form, harm string) {
	t.Helper()
	names := v.named(form)
	name := names[d.random.IntN(len(names))]
	data := harms[harm](d.random, []byte(v.files[name]))
	if data != nil && string(data) == v.files[name] {
		all.harmless++ // zeros where zeros were
		return
	}
	dir := v.lay(t, name, data)
	defer os.RemoveAll(dir)
	what := fmt.Sprintf("%s, %s %s at byte %d of %d", v.name, name, harm, firstDifference(v.files[name], string(data)), len(v.files[name]))
	said, err := exec.Command(d.binary, "check", "--data-dir", dir).CombinedOutput()
	found := err != nil
	if found && !strings.Contains(string(said), name) {
		t.Errorf("%s: check does not name the file: %s", what, said)
	}
	if found {
		all.found++
	}
	before := filesIn(t, dir)
	refused, reads := d.open(t, v, dir)
	if refused != "" {
		all.refused++
		if !found || !strings.Contains(refused, name) || !strings.Contains(refused, "backup") || !maps.Equal(before, filesIn(t, dir)) {
			t.Errorf("%s: refused, with %q; found by check: %v, files as they were: %v", what, refused, found, maps.Equal(before, filesIn(t, dir)))
		}
		return
	}
	all.add(reads)
	switch {
	case len(reads.silent) > 0:
		t.Errorf("%s: %d reads said nothing and %d did: %q", what, len(reads.silent), len(reads.reported), reads.silent[0])
	case !found && len(reads.reported) > 0:
		t.Errorf("%s: check finds nothing, and a read says %q", what, reads.reported[0])
	case !found:
		all.harmless++
	}
}

func firstDifference(a, b string) int {
	for i := range min(len(a), len(b)) {
		if a[i] != b[i] {
			return i
		}
	}
	return min(len(a), len(b))
}

// open starts a server on a store. It returns what the server says if it ends at once,
// else what its reads answer.
func (d *damageSoak) open(t *testing.T, v *damageVictim, dir string) (refused string, reads damageReads) {
	t.Helper()
	c := exec.Command(d.binary, "--addr=127.0.0.1:0", "--data-dir="+dir, "--workspace="+t.TempDir(), "--log-level=error")
	stderr := &output{}
	stdout := &output{line: make(chan string, 1)}
	c.Stdout, c.Stderr = stdout, stderr
	must(t, c.Start())
	ended := make(chan error, 1)
	go func() { ended <- c.Wait() }()
	defer func() {
		_ = c.Process.Kill()
		<-ended //nolint:errcheck // it was killed, or said already how it ended
	}()
	select {
	case err := <-ended:
		ended <- err
		if exit, ok := errors.AsType[*exec.ExitError](err); !ok || exit.ExitCode() != 1 {
			t.Errorf("the server ended with %v: %s", err, stderr)
		}
		return stderr.String(), reads
	case <-time.After(soakDeadline):
		t.Fatal("the server neither serves nor ends")
	case address := <-stdout.line:
		conn := mustDial(t, address)
		defer conn.Close()
		reads = v.read(t.Context(), conn)
	}
	return "", reads
}

// read reads all that was acknowledged.
func (v *damageVictim) read(ctx context.Context, conn *grpc.ClientConn) (reads damageReads) {
	for _, a := range v.acked {
		ctx, cancel := context.WithTimeout(ctx, soakDeadline)
		got, err := a.read(ctx, conn)
		cancel()
		switch {
		case status.Code(err) == codes.DataLoss:
			reads.reported = append(reads.reported, fmt.Sprintf("%s: %v", a.what, err))
		case err != nil && !errors.Is(err, io.EOF) || got != a.want:
			reads.silent = append(reads.silent, fmt.Sprintf("%s: %v, %d bytes where %d are due: %.80q, not %.80q", a.what, err, len(got), len(a.want), got, a.want))
		}
	}
	return reads
}
