package server_test

import (
	"strings"
	"testing"

	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"

	"github.com/loom-bridge/loom-bridge/internal/testkit/servertest"
	loombridgev1 "github.com/loom-bridge/loom-bridge/proto/gen/loombridge/v1"
)

// A prompt of nothing is too long for a budget of one token, and there is no part to
// blame.
func TestOverflowOfNothing(t *testing.T) {
	s := servertest.Start(t, nil)
	_, err := s.Context.Assemble(t.Context(), &loombridgev1.AssembleRequest{AgentId: "a", SessionId: "s", MaxTokens: 1, WithoutTools: true})
	if text := status.Convert(err).Message(); status.Code(err) != codes.FailedPrecondition ||
		strings.Contains(text, "largest is") || !strings.Contains(text, "exceeds 1: ") {
		t.Errorf("%v", err)
	}
}
