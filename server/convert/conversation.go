package convert

import (
	"iter"

	"google.golang.org/protobuf/proto"
	"google.golang.org/protobuf/types/known/timestamppb"

	"github.com/loom-bridge/loom-bridge/bridge/tiers"
	"github.com/loom-bridge/loom-bridge/context/assemble"
	"github.com/loom-bridge/loom-bridge/context/assemble/past"
	"github.com/loom-bridge/loom-bridge/context/assemble/record"
	"github.com/loom-bridge/loom-bridge/context/conversation"
	"github.com/loom-bridge/loom-bridge/context/session"
	"github.com/loom-bridge/loom-bridge/context/transfer"
	loombridgev1 "github.com/loom-bridge/loom-bridge/proto/gen/loombridge/v1"
	"github.com/loom-bridge/loom-bridge/server/page"
)

// SessionPage is the first page of sessions: at most size of them.
func SessionPage(sessions iter.Seq2[session.Summary, error], size int) (*loombridgev1.ListSessionsResponse, error) {
	out := &loombridgev1.ListSessionsResponse{}
	for s, err := range sessions {
		if err != nil {
			return nil, err
		}
		if n := len(out.Sessions); n == size {
			out.NextPageToken = page.Sessions.Token(out.Sessions[n-1].GetSessionId())
			break
		}
		out.Sessions = append(out.Sessions, &loombridgev1.SessionInfo{
			SessionId: s.ID, LastPosition: int64(s.Last), BeginTime: Timestamp(s.Begun), UpdateTime: Timestamp(s.Updated), Ended: s.Ended, Closed: s.Closed,
		})
	}
	return out, nil
}

// ConversationPage is the first page of items that has at most size of them and
// fits into limit bytes.
func ConversationPage(items iter.Seq2[conversation.Entry, error], size, limit int, newestFirst bool, asText bool) (*loombridgev1.ListConversationResponse, error) {
	out := &loombridgev1.ListConversationResponse{}
	// The frame of an entry in the page, and the token at its end.
	const overhead = 64
	used := 0
	var last conversation.Cursor
	for item, err := range items {
		if err != nil {
			return nil, err
		}
		one := conversationEntry(item, asText)
		used += proto.Size(one) + overhead
		if n := len(out.Entries); n == size || n > 0 && used > limit {
			out.NextPageToken = page.ConversationToken(last, newestFirst)
			break
		}
		out.Entries, last = append(out.Entries, one), item.Place
	}
	return out, nil
}

func conversationEntry(item conversation.Entry, asText bool) *loombridgev1.ConversationEntry {
	out := &loombridgev1.ConversationEntry{
		Position: int64(item.Position), CreateTime: Timestamp(item.Time), FoldBatch: int64(item.Batch),
	}
	switch {
	case item.Task != nil:
		out.Entry = &loombridgev1.ConversationEntry_Task{Task: Task(*item.Task, asText)}
	case item.Step != nil:
		out.Entry = &loombridgev1.ConversationEntry_Step{Step: Step(*item.Step, item.Position, asText)}
	default:
		message := new(loombridgev1.Message)
		writeMessage(message, item.Message)
		message.Pinned, message.Observation = item.Message.Pinned, item.Message.Observation
		out.Entry = &loombridgev1.ConversationEntry_Message{Message: message}
	}
	return out
}

// FoundTask is the listing of a task that was named by its id.
func FoundTask(found tiers.FoundTask, asText bool) *loombridgev1.ListConversationResponse {
	entry := &loombridgev1.ConversationEntry{
		CreateTime: Timestamp(found.Task.CreateTime), SessionId: found.Task.SessionID,
		Entry: &loombridgev1.ConversationEntry_Task{Task: Task(found.Task, asText)},
	}
	for _, tier := range found.Tiers {
		entry.Tiers = append(entry.Tiers, Int32(tier))
	}
	return &loombridgev1.ListConversationResponse{Entries: []*loombridgev1.ConversationEntry{entry}}
}

// PromptDiff is how two prompts differ.
func PromptDiff(d assemble.Diff) *loombridgev1.DiffPromptsResponse {
	out := &loombridgev1.DiffPromptsResponse{FromPromptId: d.From, ToPromptId: d.To}
	if d.First.Section != "" {
		out.Difference = differenceOf(&d.First)
		out.FromExcerpt, out.ToExcerpt = utf8Text(d.First.From), utf8Text(d.First.To)
	}
	return out
}

// FoundInPrompts is where a text stood in prompts.
func FoundInPrompts(f *assemble.Found) *loombridgev1.FindInPromptsResponse {
	out := &loombridgev1.FindInPromptsResponse{Unread: f.Unread}
	for i := range f.Prompts {
		p := &f.Prompts[i]
		figures := record.FiguresOf(p.Kept)
		sent := &loombridgev1.SentPrompt{
			PromptId: p.ID, Number: int64(p.Number), LastPosition: int64(p.Position), Model: p.Model, Tokens: Int32(p.Tokens), Parts: make(map[string]int32, len(p.Sizes)),
			ExpectedCachedTokens: Int32(figures.Cached), Cost: figures.Cost, AppendOnlyCost: figures.AppendOnlyCost,
			FoldBatch: int64(figures.Batch), Renewals: Int32(figures.Renewals), UndonePosition: int64(figures.Undone),
		}
		if !figures.Time.IsZero() {
			sent.CreateTime = timestamppb.New(figures.Time)
		}
		for _, size := range p.Sizes {
			sent.Parts[size.Section] += Int32(size.Tokens)
		}
		for _, at := range p.Places {
			place := &loombridgev1.TextPlace{Section: at.Section, MessageIndex: Int32(at.Message), Batch: int64(at.Batch)}
			if at.From > 0 {
				place.Ref = session.MessageID(at.From)
			}
			sent.Places = append(sent.Places, place)
		}
		out.Prompts = append(out.Prompts, sent)
	}
	for i := range f.Origins {
		o := &f.Origins[i]
		origin := &loombridgev1.TextOrigin{Ref: o.Ref(), Position: int64(o.Position), Source: utf8Text(o.Source()), Part: o.Part}
		if o.Step != nil {
			origin.ArgumentsJson = utf8Text(string(o.Step.MinimalArgs))
		}
		out.Origins = append(out.Origins, origin)
	}
	for i := range f.Losses {
		l := &f.Losses[i]
		out.Losses = append(out.Losses, &loombridgev1.TextLoss{
			PromptId: l.Prompt.ID, Number: int64(l.Prompt.Number), Section: l.Section,
			Cause: loombridgev1.LossCause(l.Cause), Batch: batchOf(l.Batch), Reason: utf8Text(l.Reason),
		})
	}
	return out
}

func differenceOf(d *past.Difference) *loombridgev1.PromptDifference {
	return &loombridgev1.PromptDifference{Section: d.Section, Byte: d.Byte, MessageIndex: Int32(d.Message)}
}

// ImportedSessions writes the outcome of an import.
func ImportedSessions(i transfer.Imported) *loombridgev1.ImportResponse {
	return &loombridgev1.ImportResponse{Saved: int64(i.Saved), Unchanged: int64(i.Unchanged), Skipped: int64(i.Skipped), Results: int64(i.Results)}
}
