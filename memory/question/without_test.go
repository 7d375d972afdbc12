package question_test

import (
	"testing"
	"time"

	"github.com/loom-bridge/loom-bridge/memory/analysis"
	"github.com/loom-bridge/loom-bridge/memory/question"
)

// What lists of words tell of a question can be left out.
func TestReadWithoutSignals(t *testing.T) {
	by := analysis.New(nil)
	read := func(text string, without ...string) (several bool, lightest float64) {
		asked, _ := question.Question{Text: text, Without: without}.Read(by, time.Now(), 0)
		for _, w := range asked.Words {
			if w.Weight > 0 {
				lightest = w.Weight
			}
		}
		return asked.List, lightest
	}
	if several, _ := read("What books does Ann read?"); !several {
		t.Error("several books are one")
	}
	if several, _ := read("What books does Ann read?", "several"); several {
		t.Error("without the signal several books are several")
	}
	if _, weight := read("What is Ann's car now?"); weight == 0 {
		t.Error("now counts in full")
	}
	if _, weight := read("What is Ann's car now?", "now"); weight != 0 {
		t.Errorf("without the signal now counts %g", weight)
	}
}
