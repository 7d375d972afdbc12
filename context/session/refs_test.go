package session

import (
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/loom-bridge/loom-bridge/context/step"
)

func TestRefRuns(t *testing.T) {
	for name, test := range map[string]struct{ refs, want []string }{
		"none":       {},
		"one":        {[]string{"step_001"}, []string{"step_001"}},
		"two":        {[]string{"step_001", "step_002"}, []string{"step_001", "step_002"}},
		"three":      {[]string{"step_001", "step_002", "step_003"}, []string{"step_001..step_003"}},
		"more zeros": {[]string{"step_998", "step_999", "step_1000"}, []string{"step_998..step_1000"}},
		"a gap":      {[]string{"step_001", "step_002", "step_004", "step_005", "step_006"}, []string{"step_001", "step_002", "step_004..step_006"}},
		"twice":      {[]string{"step_001", "step_001", "step_002", "step_003"}, []string{"step_001", "step_001..step_003"}},
		"back":       {[]string{"step_003", "step_002", "step_001"}, []string{"step_003", "step_002", "step_001"}},
		"two sorts": {
			[]string{"step_001", "step_002", "message_003", "message_004", "message_005", "step_006"},
			[]string{"step_001", "step_002", "message_003..message_005", "step_006"},
		},
		"tens":    {[]string{"step_009", "step_010", "step_011"}, []string{"step_009..step_011"}},
		"bare":    {[]string{"step_009", "step_10", "step_11", "step_0012"}, []string{"step_009", "step_10", "step_11", "step_0012"}},
		"neither": {[]string{"ab", "ac", "step_01"}, []string{"ab", "ac", "step_01"}},
	} {
		t.Run(name, func(t *testing.T) {
			if diff := cmp.Diff(test.want, RefRuns(test.refs)); diff != "" {
				t.Errorf("(-want +got):\n%s", diff)
			}
		})
	}
}

// A receipt of a long history stays small.
func TestRefsOfALongHistory(t *testing.T) {
	refs := make([]string, 10_000)
	for i := range refs {
		refs[i] = step.ID(uint64(i + 1))
	}
	if got := RefRuns(refs); len(got) != 1 || got[0] != "step_001..step_10000" {
		t.Errorf("%d refs: %.3q", len(got), got)
	}
}
