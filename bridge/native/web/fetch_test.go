package web

import (
	"reflect"
	"testing"

	"github.com/loom-bridge/loom-bridge/bridge/egress"
)

// Pages come from the ports of the web, and from those that a rule names.
func TestOnWeb(t *testing.T) {
	t.Parallel()
	rule := egress.Rule{Host: "docs.example", Ports: []int{8443}}
	given := egress.Policy{Open: true, Rules: []egress.Rule{rule}}
	if got := onWeb(given); got.Open || !reflect.DeepEqual(got.Rules, []egress.Rule{rule, {Host: "*"}}) || got.Check() != nil {
		t.Errorf("an open policy became %+v", got)
	}
	if len(given.Rules) != 1 {
		t.Error("the given one was changed")
	}
	closed := egress.Policy{Rules: []egress.Rule{rule}}
	if got := onWeb(closed); !reflect.DeepEqual(got, closed) {
		t.Errorf("one with rules alone became %+v", got)
	}
}
