package server_test

import (
	"context"
	"strings"
	"testing"
	"time"

	"google.golang.org/grpc/codes"

	"github.com/loom-bridge/loom-bridge/bridge/share"
	"github.com/loom-bridge/loom-bridge/internal/testkit/servertest"
	loombridgev1 "github.com/loom-bridge/loom-bridge/proto/gen/loombridge/v1"
	"github.com/loom-bridge/loom-bridge/server"
	"github.com/loom-bridge/loom-bridge/server/compose"
)

// A tenant that has filled nearly all of the disk stores nothing more until it has
// deleted some: records, events and steps alike. It still reads and deletes, and
// another tenant notices nothing.
func TestDiskIsShared(t *testing.T) {
	s := servertest.Start(t, &servertest.Options{
		Server: server.Options{Credentials: MustCredentials(t, callers())},
		Domain: compose.Options{Disk: share.Disk{
			Tenants: func() []string { return []string{"acme", "umbrella"} }, MaxBytes: 2 << 20, Every: 10 * time.Millisecond,
		}},
	})
	acme, umbrella := withToken(t.Context(), "Bearer acme-token"), withToken(t.Context(), "Bearer umbrella-token")
	save := func(ctx context.Context, agent, text string) (string, error) {
		r, err := s.Bridge.MemorySave(ctx, &loombridgev1.MemorySaveRequest{AgentId: agent, Text: text})
		return r.GetId(), err
	}
	other, err := save(umbrella, "x", "a note")
	must(t, err)
	large := strings.Repeat("words and more words ", 5000)
	var ids []string
	for err == nil && len(ids) < 200 {
		var id string
		if id, err = save(acme, "lead", large); err == nil {
			ids = append(ids, id)
		}
		time.Sleep(2 * time.Millisecond)
	}
	MustFail(t, err, codes.ResourceExhausted, "QUOTA_EXCEEDED")
	if !strings.Contains(err.Error(), "bytes on disk") || !strings.Contains(err.Error(), "--max-store-bytes") {
		t.Errorf("the error does not say of what, and what to do: %v", err)
	}
	_, err = s.Bridge.Emit(acme, &loombridgev1.EmitRequest{AgentId: "lead", Topic: "news"})
	MustFail(t, err, codes.ResourceExhausted, "QUOTA_EXCEEDED")
	_, err = s.Bridge.Emit(acme, &loombridgev1.EmitRequest{AgentId: "lead", Topic: "news", Delivery: loombridgev1.Delivery_DELIVERY_VOLATILE})
	must(t, err)
	_, err = s.Bridge.Tool(acme, &loombridgev1.ToolRequest{AgentId: "lead", Name: "fs:list_dir"})
	MustFail(t, err, codes.ResourceExhausted, "QUOTA_EXCEEDED")
	_, err = s.Bridge.MemoryQuery(acme, &loombridgev1.MemoryQueryRequest{AgentId: "lead", Query: "words"})
	must(t, err)

	_, err = save(umbrella, "x", "another note")
	must(t, err)
	_, err = s.Memory.GetRecord(umbrella, &loombridgev1.GetRecordRequest{AgentId: "x", Name: &loombridgev1.GetRecordRequest_Id{Id: other}})
	must(t, err)
	_, err = s.Bridge.Emit(umbrella, &loombridgev1.EmitRequest{AgentId: "x", Topic: "news"})
	must(t, err)

	for _, id := range ids[:len(ids)/2] {
		_, err := s.Memory.DeleteRecords(acme, &loombridgev1.DeleteRecordsRequest{AgentId: "lead", Name: &loombridgev1.DeleteRecordsRequest_Id{Id: id}})
		must(t, err)
	}
	MustBecome(t, "there is room again", func() bool {
		_, err := save(acme, "lead", "a note")
		return err == nil
	})
}
