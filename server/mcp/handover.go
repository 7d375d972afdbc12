package mcp

import (
	"context"
	"fmt"
	"slices"
	"strings"

	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"

	"github.com/loom-bridge/loom-bridge/context/assemble/pairing"
	"github.com/loom-bridge/loom-bridge/context/step"
	"github.com/loom-bridge/loom-bridge/context/text"
	loombridgev1 "github.com/loom-bridge/loom-bridge/proto/gen/loombridge/v1"
	"github.com/loom-bridge/loom-bridge/server/convert"
)

const (
	// bytesPerToken converts a budget of tokens into one of bytes where none are counted: little
	// enough for prose of any script.
	bytesPerToken = 3
	// entriesOfPage are read at once, the newest first.
	entriesOfPage = 50
	// shareOfFirst and shareOfEntry are what part of the budget the request that began the
	// session, and any other entry, may take.
	shareOfFirst, shareOfEntry = 6, 4
)

// Handover is a session as one text within the budget of a request, to go on with it
// elsewhere; empty if nothing is recorded in it. It changes nothing: a fold that is due
// waits for the one who makes prompts of the session. Where the session can't be folded into
// the budget, or only without the request that began it, the text has what fits: that request and
// the newest entries, long ones shortened, with marks for what is left out.
func Handover(ctx context.Context, prompts loombridgev1.PromptServiceClient, sessions loombridgev1.SessionServiceClient, ask *loombridgev1.AssembleRequest) (string, error) {
	ask.WithoutTools, ask.DryRun = true, true
	prompt, err := prompts.Assemble(ctx, ask)
	if err != nil && (!overflows(err) || ask.GetMaxTokens() == 0) {
		return "", err
	}
	var written strings.Builder
	for _, m := range prompt.GetMessages() {
		writeMessage(&written, m)
	}
	text := forHosts(written.String())
	if err == nil && (text == "" || ask.GetMaxTokens() == 0) {
		return text, nil
	}
	began, failed := sessions.ListConversation(convert.AskText(ctx), &loombridgev1.ListConversationRequest{
		AgentId: ask.GetAgentId(), SessionId: ask.GetSessionId(), PageSize: 1,
	})
	if failed != nil {
		return "", failed
	}
	if err == nil && begins(text, began.GetEntries()) {
		return text, nil
	}
	return newest(ctx, sessions, ask, began.GetEntries())
}

// hostWords has, in place of the words by which a prompt tells a model to read on with
// fs:read_file, the tool that a host has for it.
var hostWords = strings.NewReplacer(
	pairing.FoldHeader(step.ToolReadFile), pairing.FoldHeader(toolBlobRead),
	"\nUse "+step.ToolReadFile+" to retrieve if needed.", "\nUse "+toolBlobRead+" to retrieve if needed.",
	"Full text: "+step.ToolReadFile+" ", "Full text: "+toolBlobRead+" ",
)

func forHosts(text string) string { return hostWords.Replace(text) }

// begins reports whether a text has what a person said in the first entry.
func begins(text string, oldest []*loombridgev1.ConversationEntry) bool {
	return !slices.ContainsFunc(oldest, func(e *loombridgev1.ConversationEntry) bool {
		m := e.GetMessage()
		return m.GetRole() == loombridgev1.Role_ROLE_USER && !strings.Contains(text, m.GetContent())
	})
}

// overflows reports whether a prompt does not fit its budget.
func overflows(err error) bool {
	return status.Code(err) == codes.FailedPrecondition && convert.Reason(err) == "CONTEXT_OVERFLOW"
}

// newest is as much of a session as fits: its oldest entry, and then the newest first.
func newest(ctx context.Context, sessions loombridgev1.SessionServiceClient, ask *loombridgev1.AssembleRequest, oldest []*loombridgev1.ConversationEntry) (string, error) {
	ctx = convert.AskText(ctx)
	room := int(ask.GetMaxTokens()) * bytesPerToken
	first, from := "", int64(0)
	for _, e := range oldest {
		first, from = shortened(entryText(e), room/shareOfFirst), e.GetPosition()
	}
	room -= len(first)
	list := &loombridgev1.ListConversationRequest{
		AgentId: ask.GetAgentId(), SessionId: ask.GetSessionId(), PageSize: entriesOfPage,
		Order: loombridgev1.ConversationOrder_CONVERSATION_ORDER_NEWEST_FIRST,
	}
	var entries []string
	for full := false; !full; {
		page, err := sessions.ListConversation(ctx, list)
		if err != nil {
			return "", err
		}
		for _, e := range page.GetEntries() {
			said := shortened(entryText(e), int(ask.GetMaxTokens())*bytesPerToken/shareOfEntry)
			if full = len(said)+2 > room || e.GetPosition() <= from; full {
				if e.GetPosition() > from {
					entries = append(entries, "[… older entries are left out here; context_assemble with more max_tokens gives them …]")
				}
				break
			}
			if said != "" {
				entries, room = append(entries, said), room-len(said)-2
			}
		}
		if list.PageToken = page.GetNextPageToken(); list.PageToken == "" {
			break
		}
	}
	if first != "" {
		entries = append(entries, first)
	}
	slices.Reverse(entries)
	return strings.Join(entries, "\n\n"), nil
}

// entryText is an entry of a session for a reader; empty for one that says nothing.
func entryText(e *loombridgev1.ConversationEntry) string {
	var said strings.Builder
	switch {
	case e.GetMessage() != nil:
		writeMessage(&said, e.GetMessage())
	case e.GetStep() != nil:
		said.WriteString("[tool] " + e.GetStep().GetToolName() + "\n" + forHosts(e.GetStep().GetObservation()))
	}
	return said.String()
}

// shortened is the beginning and the end of a text of more than so many bytes, with a mark
// between them.
func shortened(given string, most int) string {
	if len(given) <= most {
		return given
	}
	const mark = "\n[… %d bytes are left out here …]\n"
	half := max(most-len(mark)-len("1234567"), 0) / 2
	return text.Head(given, half) + fmt.Sprintf(mark, len(given)-2*half) + text.Tail(given, half)
}
