package server_test

import (
	"strings"
	"testing"

	"github.com/loom-bridge/loom-bridge/internal/testkit/servertest"
	"github.com/loom-bridge/loom-bridge/memory"
	"github.com/loom-bridge/loom-bridge/memory/redact"
	loombridgev1 "github.com/loom-bridge/loom-bridge/proto/gen/loombridge/v1"
	"github.com/loom-bridge/loom-bridge/server/compose"
)

// Secrets are found in a record behind odd quotes and a NUL byte, with an @ in the password
// of a URL, and in the kind.
//
// Y42
func TestSecretsInOddForms(t *testing.T) {
	by, err := redact.New([]string{redact.Secrets}, nil)
	must(t, err)
	s := servertest.Start(t, &servertest.Options{Domain: compose.Options{Memory: memory.Options{Redact: by}}})
	for _, r := range []*loombridgev1.MemorySaveRequest{
		{Text: "password=\x00hunter2\x00 and on"},
		{Text: `{\"password\": \"hunter2\"}`},
		{Text: `password = """hunter2"""`},
		{Text: `password='"hunter2"'`},
		{Text: "open https://bob:p@hunter2@example.org/x"},
		{Text: "a record", Kind: "password=hunter2"},
	} {
		saved := remember(t, s, r)
		got, err := s.Memory.GetRecord(t.Context(), &loombridgev1.GetRecordRequest{AgentId: agent, Name: &loombridgev1.GetRecordRequest_Id{Id: saved.GetId()}})
		must(t, err)
		if text := got.String(); strings.Contains(text, "hunter2") || !strings.Contains(text, "[redacted:") || len(saved.GetRedacted()) != 1 {
			t.Errorf("%v was kept as %s", r, text)
		}
	}
}
