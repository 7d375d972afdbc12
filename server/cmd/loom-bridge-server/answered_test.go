package main

import (
	"testing"
	"time"

	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"

	loombridgev1 "github.com/loom-bridge/loom-bridge/proto/gen/loombridge/v1"
)

// repeatable are requests of each keyspace that keeps answers, by what they are:
// each makes one with an id and some content.
func repeatable(t *testing.T, p *process) map[string]func(content string) error {
	client := loombridgev1.NewContextServiceClient(p.conn)
	name := recordText(t, p.conn, "a", slowLine(2000))
	return map[string]func(content string) error{
		"record": func(content string) error {
			_, err := p.bridge().MemorySave(t.Context(), &loombridgev1.MemorySaveRequest{AgentId: "a", Text: content, RequestId: "r"})
			return err
		},
		"message": func(content string) error {
			_, err := client.AppendMessages(t.Context(), &loombridgev1.AppendMessagesRequest{
				AgentId: "a", RequestId: "r", Messages: []*loombridgev1.Message{{Role: loombridgev1.Role_ROLE_USER, Content: content}},
			})
			return err
		},
		"blob": func(content string) error {
			_, err := client.ArchiveBlob(t.Context(), &loombridgev1.ArchiveBlobRequest{AgentId: "a", Name: name, Tags: []string{content}, RequestId: "r"})
			return err
		},
	}
}

// A request id is answered for as long as the server is told, and free after that.
func TestRequestRetention(t *testing.T) {
	t.Parallel()
	forgetful := repeatable(t, MustRun(t, t.TempDir(), "--request-retention", "300ms"))
	faithful := repeatable(t, MustRun(t, t.TempDir(), "--request-retention", "0"))
	for what := range forgetful {
		must(t, forgetful[what]("first"))
		must(t, faithful[what]("first"))
		must(t, faithful[what]("first")) // is answered again
		eventually(t, 20*time.Second, func() error { return forgetful[what]("another") })
		if err := faithful[what]("another"); status.Code(err) != codes.AlreadyExists {
			t.Errorf("%s: other content under the same id: %v", what, err)
		}
	}
}
