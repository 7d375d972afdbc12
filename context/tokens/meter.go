package tokens

import (
	"math"
	"sync"
)

// Usage is what a provider reported for one request.
type Usage struct {
	// Prompt is all that was sent, tools and cached tokens included.
	Prompt int
	// Completion is the answer.
	Completion int
	// Reasoning is the part of the answer that is not sent again with the next
	// prompt.
	Reasoning int
}

// Request is a prompt as a caller knows it before it is sent.
type Request struct {
	// Model is the model it is for.
	Model string
	// ID names the prompt, for instance by its hash.
	ID string
	// Base is the ID of an earlier prompt that this one begins with unchanged,
	// its tools included; empty where something before the end changed: a
	// fold, an undo, other tools.
	Base string
	// Local is all of it as the Counter counts it.
	Local Count
	// Added is how many tokens of Local stand behind the base and the answer
	// to it.
	Added int
}

// Anchor is a prompt whose size the provider reported. It is a plain value that may
// be stored; the zero value anchors nothing.
type Anchor struct {
	// Model and ID are the prompt's.
	Model, ID string
	// Local is what the Counter made of it, Real what the provider did.
	Local, Real int
	// Answer is what the answer adds to the next prompt.
	Answer int
}

// holds reports whether a prompt begins with the anchored one and its answer.
func (a Anchor) holds(p Request) bool {
	return a.Real > 0 && a.ID != "" && a.ID == p.Base && a.Model == p.Model
}

// Prediction is what a prompt will be counted as by its provider.
type Prediction struct {
	Count
	// Reserve is how much more it may well be, in tokens. A budget that must
	// not be passed is compared with Tokens + Reserve.
	Reserve int
}

// How a Meter learns.
const (
	// memory is what is left of a report's weight after the next one: about a
	// hundred reports count.
	memory = 0.99
	// firstWeight is what the table's ratio weighs, in tokens: as much as a
	// tool result or two, so that the first reports outweigh it.
	firstWeight = 600
	// firstSpread is how far from the table's ratio a model may be: the
	// standard deviation, where the vocabulary is known and where it is not.
	firstSpread        = 0.03
	firstUnknownSpread = 0.15
	// addedSpread is the same for the short texts that are added at a time.
	addedSpread = 0.1
	// reserveSpreads is the reserve in standard deviations.
	reserveSpreads = 2
	// ownRatio is how far from 1 a prompt's ratio is when its text must be the reason.
	ownRatio = 1. / 3
	// A ratio beyond these is a prompt that was counted without one of its
	// parts, not a tokenizer.
	minLearned, maxLearned = 0.2, 5
	// maxMetered is how many models are known; their names come from requests.
	maxMetered = 1 << 10
)

// Meter learns from reported usage how many tokens a model makes of each one
// that was counted, and predicts the next prompt. All methods are safe for
// concurrent use.
type Meter struct {
	models *Models

	mu    sync.Mutex // guards known
	known map[string]*calibration
}

// NewMeter returns a meter that begins with the ratios of the models' table;
// nil is the built-in one.
func NewMeter(models *Models) (*Meter, error) {
	if models == nil {
		var err error
		if models, err = BuiltinModels(); err != nil {
			return nil, err
		}
	}
	return &Meter{models: models, known: make(map[string]*calibration)}, nil
}

// calibration describes one model: for whole prompts, and for additions to an anchored
// prompt.
type calibration struct {
	whole average
	// added is the ratio of added tokens to their number predicted from the rest of the
	// prompt.
	added average
	// exact says that the vocabulary is the model's: tokens are what they are, and
	// a whole prompt has more only because of uncounted parts.
	exact bool
}

// expected is how many tokens a provider makes of each one added to an anchored
// prompt. That prompt's ratio says it where the vocabulary is not the model's; one
// near 1 may as well come from the frames of a short prompt.
func (c *calibration) expected(last Anchor) float64 {
	ratio, ok := last.ratio(last.Model)
	if !ok || c.exact || math.Abs(ratio-1) < ownRatio {
		return 1
	}
	return ratio
}

// average is a weighted mean that forgets, and its spread.
type average struct{ sum, weight, squares float64 }

func newAverage(mean, spread float64) average {
	return average{mean * firstWeight, firstWeight, spread * spread * firstWeight}
}

func (a *average) mean() float64   { return a.sum / a.weight }
func (a *average) spread() float64 { return math.Sqrt(a.squares / a.weight) }

// learn adds what counted tokens really were.
func (a *average) learn(real, counted float64) {
	ratio := real / counted
	if !(ratio >= minLearned && ratio <= maxLearned) {
		return
	}
	off := ratio - a.mean()
	a.sum = a.sum*memory + real
	a.weight = a.weight*memory + counted
	a.squares = a.squares*memory + off*off*counted
}

// Predict returns what a prompt will be. With an anchor that it begins with,
// it is what the provider reported, and only the rest is counted. Any other
// anchor of the same model still gives the ratio of the session; without one
// the ratio of the model is used.
func (m *Meter) Predict(p Request, last Anchor) Prediction {
	m.mu.Lock()
	defer m.mu.Unlock()
	c := m.calibration(p.Model)
	prediction := Prediction{Count: p.Local}
	if last.holds(p) {
		prediction.Exact, prediction.Anchored = false, true
		added := float64(max(p.Added, 0)) * c.expected(last)
		prediction.Tokens = last.Real + last.Answer + round(added*c.added.mean())
		prediction.Reserve = round(added * c.added.spread() * reserveSpreads)
		return prediction
	}
	ratio := c.whole.mean()
	if own, ok := last.ratio(p.Model); ok {
		ratio = own
	}
	local := float64(max(p.Local.Tokens, 0))
	prediction.Exact, prediction.Anchored = prediction.Exact && ratio == 1, false
	prediction.Tokens = round(local * ratio)
	if !prediction.Exact {
		prediction.Reserve = round(local * c.whole.spread() * reserveSpreads)
	}
	return prediction
}

// Report learns from the usage of a prompt that was sent, and returns the anchor
// for the next one. Last is the anchor the prompt was predicted with. Usage
// without prompt tokens teaches nothing and anchors nothing.
func (m *Meter) Report(p Request, last Anchor, u Usage) Anchor {
	if u.Prompt <= 0 {
		return Anchor{}
	}
	m.mu.Lock()
	defer m.mu.Unlock()
	c := m.calibration(p.Model)
	if p.Local.Tokens > 0 {
		c.whole.learn(float64(u.Prompt), float64(p.Local.Tokens))
	}
	if last.holds(p) && p.Added > 0 {
		c.added.learn(float64(u.Prompt-last.Real-last.Answer), float64(p.Added)*c.expected(last))
	}
	return Anchor{
		Model: p.Model, ID: p.ID, Local: max(p.Local.Tokens, 0), Real: u.Prompt,
		Answer: max(u.Completion-max(u.Reasoning, 0), 0),
	}
}

// ratio is what the provider made of each token of the anchored prompt.
func (a Anchor) ratio(model string) (ratio float64, ok bool) {
	if a.Model != model || a.Local <= 0 {
		return 0, false
	}
	ratio = float64(a.Real) / float64(a.Local)
	return ratio, ratio >= minLearned && ratio <= maxLearned
}

// calibration needs the lock held. The Counter has applied the table's ratio
// already, so every model begins at one. One model too many learns nothing.
func (m *Meter) calibration(model string) *calibration {
	if c := m.known[model]; c != nil {
		return c
	}
	spread, exact := firstUnknownSpread, m.models.find(model).Exact
	if exact {
		spread = firstSpread
	}
	c := &calibration{whole: newAverage(1, spread), added: newAverage(1, addedSpread), exact: exact}
	if len(m.known) < maxMetered {
		m.known[model] = c
	}
	return c
}

func round(f float64) int { return int(math.Round(min(max(f, 0), maxWindow))) }
