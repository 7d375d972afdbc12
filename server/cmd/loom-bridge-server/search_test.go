package main

import (
	"context"
	"errors"
	"io"
	"slices"
	"strings"
	"testing"
	"time"

	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"

	"github.com/loom-bridge/loom-bridge/context/turn"
	"github.com/loom-bridge/loom-bridge/internal/testkit/contexts"
	loombridgev1 "github.com/loom-bridge/loom-bridge/proto/gen/loombridge/v1"
)

// slowPattern is slow on slowLine and the like: no text stands in every match, and
// hundreds of beginnings of a match are alive at once.
const slowPattern = `([a-z]{1,9}[0-9]?){1,40}[!?]`

func slowLine(bytes int) string { return strings.Repeat("x", bytes) + "!" }

// recordText records a result that becomes a blob, and returns its name.
func recordText(tb testing.TB, conn *grpc.ClientConn, agent, text string) string {
	tb.Helper()
	step, err := contexts.New(conn).RecordStep(tb.Context(), &loombridgev1.RecordStepRequest{
		AgentId: agent, ToolName: "my:tool", Success: true, OutputForm: &loombridgev1.RecordStepRequest_OutputText{OutputText: text},
	})
	must(tb, err)
	return step.GetStep().GetId()
}

// searchPage makes one search and returns the numbers of the lines it gave.
func searchPage(ctx context.Context, conn *grpc.ClientConn, r *loombridgev1.SearchBlobsRequest) (lines []int64, next string, err error) {
	stream, err := contexts.New(conn).SearchBlobs(ctx, r)
	if err != nil {
		return nil, "", err
	}
	for {
		answer, err := stream.Recv()
		if errors.Is(err, io.EOF) {
			return lines, next, nil
		}
		if err != nil {
			return nil, "", err
		}
		for _, m := range answer.GetMatches() {
			lines = append(lines, m.GetLine())
		}
		next = answer.GetNextPageToken()
	}
}

// A search whose time is over gives what it has and says where to go on; page by
// page it finds what it would have found at once.
func TestSearchTime(t *testing.T) {
	t.Parallel()
	const lines = 40
	var text strings.Builder
	for range lines {
		text.WriteString(slowLine(1000) + "\nnone here\n")
	}
	p := MustRunWith(t, t.TempDir(), func(c *Config) { c.Blobs.SearchTime = 20 * time.Millisecond })
	r := &loombridgev1.SearchBlobsRequest{
		AgentId: "a", Name: recordText(t, p.conn, "a", text.String()), MaxMatches: 1000,
		Pattern: &loombridgev1.SearchBlobsRequest_Regexp{Regexp: slowPattern},
	}
	var found []int64
	pages := 0
	for {
		page, next, err := searchPage(t.Context(), p.conn, r)
		if err != nil && strings.Contains(err.Error(), "takes longer than") {
			continue // on a busy machine one line may wait so long for a processor
		}
		must(t, err)
		found, pages = append(found, page...), pages+1
		if next == "" {
			break
		}
		if next == r.GetPageToken() { // on a busy machine there are many, each a little further
			t.Fatalf("page %d goes on where it began", pages)
		}
		r.PageToken = next
	}
	if len(found) != lines || found[0] != 1 || found[lines-1] != 2*lines-1 || !slices.IsSorted(found) {
		t.Errorf("%d lines in %d pages: %v", len(found), pages, found)
	}
	if pages < 3 {
		t.Errorf("the time of a search has no effect: %d pages", pages)
	}
	archive, err := contexts.New(p.conn).UpdateBlob(t.Context(), &loombridgev1.UpdateBlobRequest{Archive: true, AgentId: "a", Name: r.GetName()})
	must(t, err)
	stream, err := contexts.New(p.conn).SearchBlobs(t.Context(), &loombridgev1.SearchBlobsRequest{AgentId: "a", MaxMatches: 1000, Pattern: r.GetPattern()})
	must(t, err)
	incomplete := false
	for answer, err := stream.Recv(); !errors.Is(err, io.EOF); answer, err = stream.Recv() {
		must(t, err)
		incomplete = incomplete || answer.GetIncomplete()
	}
	if !incomplete {
		t.Errorf("the search of the archive, which has %s, does not say that its time was over", archive.GetPath())
	}
}

const (
	// neighbourSaves are how many saves are timed.
	neighbourSaves = 100
	// neighbourLimit is far above what a save takes beside searches, and far below
	// what it took when they had all processors; neighbourTimes is as many times what one
	// takes alone, on a machine with other work.
	neighbourLimit = 100 * time.Millisecond
	neighbourTimes = 10
	// crowdedSearches are more than one agent may have under way, and of which each
	// would take seconds.
	crowdedSearches = 40
)

// Many searches at once leave room for others' calls, only so many of one agent
// are taken, and those that are cancelled end at once.
func TestSearchesLeaveRoom(t *testing.T) {
	process, address := mustStart(t, mustBuild(t), "--addr", "127.0.0.1:0", "--data-dir", t.TempDir(), "--workspace", t.TempDir(), "--log-level", "off")
	conn, neighbour := mustDial(t, address), mustDial(t, address)
	defer conn.Close()
	defer neighbour.Close()
	name := recordText(t, conn, "a", slowLine(900_000))
	alone := medianSave(t, neighbour)
	ctx, cancel := context.WithCancel(t.Context())
	ended := make(chan error, crowdedSearches)
	for range crowdedSearches {
		go func() {
			_, _, err := searchPage(ctx, conn, &loombridgev1.SearchBlobsRequest{
				AgentId: "a", Name: name, Pattern: &loombridgev1.SearchBlobsRequest_Regexp{Regexp: slowPattern},
			})
			ended <- err
		}()
	}
	for range crowdedSearches - turn.DefaultMaxOwner {
		if err := <-ended; status.Code(err) != codes.Unavailable {
			t.Fatalf("a search too many of one agent: %v", err)
		}
	}
	if median := medianSave(t, neighbour); median > max(neighbourLimit, neighbourTimes*alone) {
		t.Errorf("half of the saves beside searches took more than %v, alone %v", median, alone)
	}
	cancel()
	for range turn.DefaultMaxOwner {
		if err := <-ended; status.Code(err) != codes.Canceled {
			t.Errorf("a cancelled search ended with %v", err)
		}
	}
	server := proc{t, process.Process.Pid}
	before := server.cpu()
	time.Sleep(300 * time.Millisecond) // what goes on takes a processor all the time
	if busy := server.cpu() - before; busy > 200*time.Millisecond {
		t.Errorf("cancelled searches go on: %v of processor time in 300 ms", busy)
	}
}

// medianSave is how long some saves take, and logs how long the slowest do.
func medianSave(tb testing.TB, conn *grpc.ClientConn) time.Duration {
	tb.Helper()
	bridge := loombridgev1.NewBridgeServiceClient(conn)
	var times []time.Duration
	for range neighbourSaves {
		began := time.Now()
		_, err := bridge.MemorySave(tb.Context(), &loombridgev1.MemorySaveRequest{AgentId: "b", Text: "a short fact"})
		must(tb, err)
		times = append(times, time.Since(began))
	}
	slices.Sort(times)
	tb.Logf("saves: p50 %v, p99 %v", times[len(times)/2], times[len(times)*99/100-1])
	return times[len(times)/2]
}
