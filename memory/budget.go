package memory

import (
	"context"

	"github.com/loom-bridge/loom-bridge/memory/passage"
)

// fill leaves of the hits what fits into MaxTokens and says most: short texts whole, of
// long ones passages. weights are those of the words that were asked for.
func (a *asking) fill(ctx context.Context, result *Answer, weights []float64) error {
	if a.query.MaxTokens == 0 {
		return nil
	}
	texts := make([]passage.Text, len(result.Hits))
	for i, hit := range result.Hits {
		texts[i] = passage.Text{Text: hit.Record.Text, Value: valueOf(i, hit.Score)}
	}
	by := passage.Filler{Terms: a.analyzer.Terms, Weights: make(map[string]float64), Count: a.countTokens}
	for i, word := range a.asked.Words {
		by.Weights[word.Text] = weights[i]
	}
	parts, err := by.Fill(ctx, texts, a.query.MaxTokens)
	if err != nil {
		return err
	}
	a.keep(result, parts)
	return nil
}

// valueOf is what a hit is worth. That it tells what was asked falls with its place: on
// LoCoMo dev .54, .18, .08, .03, .011, .004 of the questions have evidence at a place up to
// 1, 2, 4, 8, 16, 32, and on RealMem dev .38, .13, .10, .05, .027, .013.
func valueOf(place int, score float64) float64 { return score / float64(place+1) }

// keep keeps of the hits the parts that are given, and counts what is not.
func (a *asking) keep(result *Answer, parts []passage.Part) {
	receipt, kept := &result.Receipt, result.Hits[:0]
	for i, hit := range result.Hits {
		part := &parts[i]
		if !part.Given() {
			receipt.OverMaxTokens++
			continue
		}
		receipt.Tokens += part.Tokens
		if !part.Whole {
			receipt.InPart++
			hit.Part = &Part{Passages: part.Passages, Tokens: a.countTokens(hit.Record.Text)}
		}
		kept = append(kept, hit)
	}
	result.Hits = kept
}
