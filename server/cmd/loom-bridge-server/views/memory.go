package views

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"strings"

	"github.com/spf13/cobra"

	"github.com/loom-bridge/loom-bridge/context/text"
	loombridgev1 "github.com/loom-bridge/loom-bridge/proto/gen/loombridge/v1"
)

// Memory is the command of one memory.
func Memory(o Options) *cobra.Command {
	v := &view{Options: o}
	var user, space, filter, key string
	find := v.command("search QUERY", "Find records", "memory search --agent a1 \"when does the desk close\"", cobra.ExactArgs(1), func(ctx context.Context, args []string) error {
		got, err := v.bridge().MemoryQuery(ctx, &loombridgev1.MemoryQueryRequest{
			AgentId: v.agent, UserId: user, SpaceId: space, Query: args[0], Filter: filter, Limit: int32(v.limit), Peek: true,
		})
		if err != nil {
			return err
		}
		t := newTable("no record says that", ">SCORE", "=ID", "KIND", "SAVED", "TEXT")
		for _, hit := range got.GetHits() {
			r := hit.GetRecord()
			t.add(fmt.Sprintf("%.2f", hit.GetScore()), r.GetId(), r.GetKind(), at(r.GetCreateTime()), said(r))
		}
		if v.json {
			return v.write(got)
		}
		if without := got.GetReceipt().GetDegraded(); len(without) > 0 {
			_, _ = fmt.Fprintln(v.Console, text.VisibleLine(strings.Join(without, "; ")))
		}
		return v.print(t)
	})
	list := v.command("list", "List records, the newest first", "memory list --agent a1 --filter 'kind = \"note\"'", cobra.NoArgs, func(ctx context.Context, _ []string) error {
		return pages(v, newTable("there are no records", "=ID", "KIND", "SAVED", "TEXT"), func(size int32, token string) (*loombridgev1.ListRecordsResponse, error) {
			return v.memory().ListRecords(ctx, &loombridgev1.ListRecordsRequest{
				AgentId: v.agent, UserId: user, SpaceId: space, Filter: filter, PageSize: size, PageToken: token, NewestFirst: true, Peek: true,
			})
		}, (*loombridgev1.ListRecordsResponse).GetRecords, func(r *loombridgev1.Record) []any {
			return []any{r.GetId(), r.GetKind(), at(r.GetCreateTime()), said(r)}
		})
	})
	show := v.command("show [ID]", "Show a record", "memory show --agent a1 01K9Y6ZQ0M8E2V4T7R5C3N1XWB\nmemory show --agent a1 --key desk/hours", cobra.MaximumNArgs(1), func(ctx context.Context, args []string) error {
		ask := &loombridgev1.GetRecordRequest{AgentId: v.agent, UserId: user, SpaceId: space, Peek: true}
		switch {
		case (key == "") == (len(args) == 0):
			return errOneName
		case key != "":
			ask.Name = &loombridgev1.GetRecordRequest_Key{Key: key}
		default:
			ask.Name = &loombridgev1.GetRecordRequest_Id{Id: args[0]}
		}
		r, err := v.memory().GetRecord(ctx, ask)
		if err != nil {
			return err
		}
		return v.record(r)
	})
	saved := &loombridgev1.MemorySaveRequest{}
	save := v.command("save [TEXT]", "Save a record", "memory save --agent a1 --kind note \"The desk closes at 17:30\"", cobra.MaximumNArgs(1), func(ctx context.Context, args []string) error {
		said, err := v.input(args)
		if err != nil {
			return err
		}
		saved.AgentId, saved.UserId, saved.SpaceId, saved.Text, saved.Key, saved.Origin = v.agent, user, space, said, key, loombridgev1.Origin_ORIGIN_USER
		got, err := v.bridge().MemorySave(ctx, saved)
		if err != nil {
			return err
		}
		return v.answer(got, "saved %s", got.GetId())
	})
	save.Long = "Save a record. Without TEXT, or with -, it is read from standard input."
	save.Flags().StringVar(&saved.Kind, "kind", "", "what it is, as a `word`; default: fact. A note stands in every prompt")
	save.Flags().StringSliceVar(&saved.Tags, "tag", nil, "a `label`; may be repeated")
	save.Flags().BoolVar(&saved.Replace, "replace", false, "change the record that has the key already")
	forget := v.command("forget [ID]", "Delete a record", "memory forget --agent a1 01K9Y6ZQ0M8E2V4T7R5C3N1XWB", cobra.MaximumNArgs(1), func(ctx context.Context, args []string) error {
		ask := &loombridgev1.DeleteRecordsRequest{AgentId: v.agent, UserId: user, SpaceId: space}
		switch {
		case (key == "") == (len(args) == 0):
			return errOneName
		case key != "":
			ask.Name = &loombridgev1.DeleteRecordsRequest_Key{Key: key}
		default:
			ask.Name = &loombridgev1.DeleteRecordsRequest_Id{Id: args[0]}
		}
		got, err := v.memory().DeleteRecords(ctx, ask)
		if err != nil {
			return err
		}
		return v.answer(got, "deleted %s", cmp.Or(got.GetId(), key))
	})
	v.listing(find, 10, maxHits)
	v.listing(list, 50, maxListed)
	for _, c := range []*cobra.Command{find, list} {
		c.Flags().StringVar(&filter, "filter", "", "only records that meet a `condition`, such as 'tags:\"market\"'")
	}
	for _, c := range []*cobra.Command{show, save, forget} {
		c.Flags().StringVar(&key, "key", "", "the caller's own `name` of the record")
	}
	for _, c := range []*cobra.Command{find, list, show, save, forget} {
		v.asAgent(c).Flags().StringVar(&user, "user", "", "`id` of the person whose memory it is, in place of the agent's")
		c.Flags().StringVar(&space, "space", "", "`id` of the space whose memory it is, in place of the agent's")
	}
	return group("memory", "Search, list, show, save and forget records of a memory", find, list, show, save, forget)
}

var errOneName = errors.New("name one record: its ID, or --key")

// said is the text of a record, behind what it is not to be read without.
func said(r *loombridgev1.Record) string {
	before := ""
	if r.GetArchived() {
		before = "[archived] "
	}
	if r.GetValidUntil() != nil {
		before += "[until " + at(r.GetValidUntil()) + "] "
	}
	return before + r.GetText()
}

// record shows all of a record.
func (v *view) record(r *loombridgev1.Record) error {
	if v.json {
		return v.write(r)
	}
	var relations []string
	for _, one := range r.GetRelations() {
		relations = append(relations, fmt.Sprint(one.GetName(), " ", one.GetToId()))
	}
	for _, field := range [][2]string{
		{"id", r.GetId()},
		{"key", r.GetKey()},
		{"kind", r.GetKind()},
		{"saved", at(r.GetCreateTime())},
		{"changed", at(r.GetUpdateTime())},
		{"version", fmt.Sprint(r.GetVersion())},
		{"happened", at(r.GetEventTime())},
		{"valid until", at(r.GetValidUntil())},
		{"expires", at(r.GetExpireTime())},
		{"by", r.GetAgentId()},
		{"author", r.GetAuthor()},
		{"session", r.GetSessionId()},
		{"tags", strings.Join(r.GetTags(), ", ")},
		{"metadata", r.GetMetadataJson()},
		{"replaces", r.GetSupersedes()},
		{"replaced by", r.GetSupersededBy()},
		{"made from", strings.Join(r.GetDerivedFrom(), ", ")},
		{"relations", strings.Join(relations, ", ")},
	} {
		if field[1] == "" || field[1] == "{}" {
			continue
		}
		if err := v.say("%-11s  %s", field[0], field[1]); err != nil {
			return err
		}
	}
	_, err := fmt.Fprintf(v.Out, "\n%s\n", text.Visible(r.GetText()))
	return err
}
