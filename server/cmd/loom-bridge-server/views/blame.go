package views

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"strings"

	loombridgev1 "github.com/loom-bridge/loom-bridge/proto/gen/loombridge/v1"
)

// blame shows for a text and a prompt where the text came from, which prompts showed it, and what
// took it out.
func (v *view) blame(ctx context.Context, wanted, prompt string) error {
	if wanted == "" {
		return errors.New("the text is empty; give the words that the prompt should have")
	}
	got, err := v.found(ctx, wanted)
	if err != nil {
		return err
	}
	at, p, err := named(got, prompt)
	if err != nil {
		return err
	}
	if v.json {
		return v.write(got)
	}
	if err := v.origins(ctx, got, wanted); err != nil {
		return err
	}
	stood := runs(got.GetPrompts()[:at+1])
	for _, line := range stood {
		if err := v.say("stood in   %s", line); err != nil {
			return err
		}
	}
	for _, l := range got.GetLosses() {
		if l.GetNumber() > p.GetNumber() {
			break
		}
		if err := v.say("gone from  prompt %d (%s): %s", l.GetNumber(), cmp.Or(l.GetSection(), "never shown"), cause(l)); err != nil {
			return err
		}
	}
	verb := "shows it"
	switch {
	case len(p.GetPlaces()) > 0:
	case len(stood) == 0:
		verb = "does not show it, nor did any prompt before"
	default:
		verb = "does not show it"
	}
	return v.say("prompt %d  %s", p.GetNumber(), verb)
}

// origins says who said a text: entries of the log, records of the agent's memory, and, where
// nothing else is known, stored results.
func (v *view) origins(ctx context.Context, got *loombridgev1.FindInPromptsResponse, wanted string) error {
	var lines []string
	for _, o := range got.GetOrigins() {
		lines = append(lines, strings.TrimSpace(fmt.Sprintf("%s: %s of %s %s", o.GetRef(), o.GetPart(), o.GetSource(), o.GetArgumentsJson())))
	}
	hits, err := v.bridge().MemoryQuery(ctx, &loombridgev1.MemoryQueryRequest{AgentId: v.agent, Query: wanted, Peek: true})
	if err != nil {
		return err
	}
	for _, hit := range hits.GetHits() {
		if r := hit.GetRecord(); strings.Contains(r.GetText(), wanted) {
			lines = append(lines, fmt.Sprintf("record %s: %s saved %s", r.GetId(), r.GetKind(), at(r.GetCreateTime())))
		}
	}
	if len(lines) == 0 {
		if lines, err = v.stored(ctx, wanted); err != nil {
			return err
		}
	}
	if len(lines) == 0 {
		lines = []string{"nothing that is kept of the session, and no record of the agent's memory"}
	}
	for _, line := range lines {
		if err := v.say("came from  %s", line); err != nil {
			return err
		}
	}
	return nil
}

// stored are the results of the session that have a text, of which prompts show other parts.
func (v *view) stored(ctx context.Context, wanted string) (lines []string, err error) {
	stream, err := loombridgev1.NewBlobServiceClient(v.conn).SearchBlobs(ctx, &loombridgev1.SearchBlobsRequest{
		AgentId: v.agent, SessionId: v.session, Pattern: &loombridgev1.SearchBlobsRequest_Literal{Literal: wanted}, MaxMatches: 1,
	})
	for err == nil {
		var part *loombridgev1.SearchBlobsResponse
		if part, err = stream.Recv(); err == nil {
			for _, m := range part.GetMatches() {
				b := part.GetBlob()
				lines = append(lines, fmt.Sprintf("result %s, line %d, which is stored and not shown", cmp.Or(b.GetPath(), b.GetRef()), m.GetLine()))
			}
		}
	}
	if errors.Is(err, io.EOF) {
		err = nil
	}
	return lines, err
}

// runs are the prompts that show a text, those in a row with the same places as one line.
func runs(prompts []*loombridgev1.SentPrompt) (lines []string) {
	first, last, where := int64(0), int64(0), ""
	end := func() {
		switch {
		case where == "":
		case first == last:
			lines = append(lines, fmt.Sprintf("prompt %d: %s", first, where))
		default:
			lines = append(lines, fmt.Sprintf("prompts %d to %d: %s", first, last, where))
		}
	}
	for _, p := range prompts {
		var places []string
		for _, at := range p.GetPlaces() {
			place := at.GetSection()
			switch {
			case at.GetRef() != "":
				place += ", " + at.GetRef()
			case at.GetBatch() > 0:
				place += fmt.Sprint(", fold of batch ", at.GetBatch())
			}
			places = append(places, place)
		}
		now := strings.Join(places, "; ")
		if now != where {
			end()
			first, where = p.GetNumber(), now
		}
		last = p.GetNumber()
	}
	end()
	return lines
}

// cause says what took a text out of a prompt, and how it is read.
func cause(l *loombridgev1.TextLoss) string {
	b := l.GetBatch()
	what := map[loombridgev1.LossCause]string{
		loombridgev1.LossCause_LOSS_CAUSE_FOLD:    "folded",
		loombridgev1.LossCause_LOSS_CAUSE_LEVEL:   "shortened at the level " + strings.ToLower(strings.TrimPrefix(b.GetLevel().String(), "PRESSURE_LEVEL_")),
		loombridgev1.LossCause_LOSS_CAUSE_RENEWAL: "the window was renewed",
		loombridgev1.LossCause_LOSS_CAUSE_CAP:     "no room for it",
		loombridgev1.LossCause_LOSS_CAUSE_SOURCE:  "what the section is made of does not say it any more",
	}[l.GetCause()]
	if b.GetNumber() > 0 {
		what += fmt.Sprint(" with batch ", b.GetNumber())
	}
	if b != nil {
		what += fmt.Sprintf(", because of %s, %d tokens into %d", strings.ToLower(strings.TrimPrefix(b.GetReason().String(), "FOLD_REASON_")), b.GetBeforeTokens(), b.GetAfterTokens())
	}
	if l.GetReason() != "" {
		what += ": " + l.GetReason()
	}
	if len(b.GetRefs()) > 0 {
		what += "; fs:read_file reads it back: " + strings.Join(b.GetRefs(), ", ")
	}
	return what
}
