package syncs

import (
	"context"
	"errors"
	"fmt"
	"io"
	"strings"

	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/metadata"
	"google.golang.org/grpc/status"
	"google.golang.org/protobuf/types/known/durationpb"
	"google.golang.org/protobuf/types/known/fieldmaskpb"
	"google.golang.org/protobuf/types/known/timestamppb"

	"github.com/loom-bridge/loom-bridge/memory/record"
	"github.com/loom-bridge/loom-bridge/memory/writer"
	loombridgev1 "github.com/loom-bridge/loom-bridge/proto/gen/loombridge/v1"
	"github.com/loom-bridge/loom-bridge/server/auth"
	"github.com/loom-bridge/loom-bridge/server/convert"
)

// Owner is whose memory.
type Owner struct{ Agent, User, Space string }

func (o Owner) String() string {
	switch {
	case o.User != "":
		return "user " + o.User
	case o.Space != "":
		return "space " + o.Space
	}
	return "agent " + o.Agent
}

// server is a memory of a server.
type server struct {
	called string
	owner  Owner
	filter string
	// notes: a record that another has replaced is outside, as it is no note.
	notes  bool
	memory loombridgev1.MemoryServiceClient
	lines  loombridgev1.TransferServiceClient
}

// newServer is a memory of the server of a connection, whose calls carry what dialled has.
func newServer(dialled context.Context, called string, conn *grpc.ClientConn, owner Owner, filter string, notes bool) *server {
	carried, _ := metadata.FromOutgoingContext(convert.AskText(dialled))
	through := carrying{conn, carried}
	return &server{called, owner, filter, notes, loombridgev1.NewMemoryServiceClient(through), loombridgev1.NewTransferServiceClient(through)}
}

// carrying is a connection whose calls carry metadata: each side has a token of its own.
type carrying struct {
	grpc.ClientConnInterface
	metadata metadata.MD
}

func (c carrying) with(ctx context.Context) context.Context {
	given, _ := metadata.FromOutgoingContext(ctx)
	return metadata.NewOutgoingContext(ctx, metadata.Join(given, c.metadata))
}

// Invoke makes a call.
func (c carrying) Invoke(ctx context.Context, method string, args, reply any, opts ...grpc.CallOption) error {
	return c.ClientConnInterface.Invoke(c.with(ctx), method, args, reply, opts...)
}

// NewStream begins a stream.
func (c carrying) NewStream(ctx context.Context, d *grpc.StreamDesc, method string, opts ...grpc.CallOption) (grpc.ClientStream, error) {
	return c.ClientConnInterface.NewStream(c.with(ctx), d, method, opts...)
}

func (s *server) name() string { return s.called }

// judge sorts the error of a change: what the record is the reason of, and what ends the round.
func judge(err error) error {
	switch convert.Reason(err) {
	case "RECORD_EXISTS", "RECORD_NOT_FOUND", "VERSION_CONFLICT":
		return errMoved
	case "OVERLOADED":
		return err
	}
	switch status.Code(err) {
	case codes.PermissionDenied, codes.InvalidArgument, codes.FailedPrecondition, codes.ResourceExhausted, codes.OutOfRange:
		return &refusedError{status.Convert(err).Message()}
	}
	return err
}

func (s *server) watch(ctx context.Context, after string) (grpc.ServerStreamingClient[loombridgev1.WatchRecordsResponse], error) {
	return s.memory.WatchRecords(ctx, &loombridgev1.WatchRecordsRequest{AgentId: s.owner.Agent, UserId: s.owner.User, SpaceId: s.owner.Space, After: after})
}

// maxRoundBytes is about how much of texts is held of one side in a round.
const maxRoundBytes = 16 << 20

func (s *server) changes(ctx context.Context, after string, most int, unchanged func(id, hash string) bool) (changes, error) {
	found, err := s.read(ctx, after, most, unchanged)
	if convert.Reason(err) == "POSITION_GONE" {
		return s.read(ctx, "", 0, unchanged)
	}
	return found, err
}

// read reads changes from a stream; with most 0 all of them.
func (s *server) read(ctx context.Context, after string, most int, unchanged func(id, hash string) bool) (changes, error) {
	ctx, stop := context.WithCancel(ctx)
	defer stop()
	found := changes{at: after, whole: after == ""}
	last := make(map[string]int) // of each id, in found
	stream, err := s.watch(ctx, after)
	if err != nil {
		return found, err
	}
	for size := 0; ; {
		change, err := stream.Recv()
		if err != nil {
			return found, err
		}
		if at := change.GetPosition(); at != "" {
			found.at = at
		}
		if change.GetCaughtUp() {
			break
		}
		e := entry{id: change.GetDeletedId()}
		if saved := change.GetSaved(); saved != nil {
			e = s.entry(saved)
			size += len(e.record.Text) + len(e.record.Metadata)
			if unchanged(e.id, e.hash) {
				e.record, size = record.Record{ID: e.id, ExpireTime: e.record.ExpireTime}, size-len(e.record.Text)-len(e.record.Metadata)
			}
		}
		if i, ok := last[e.id]; ok {
			found.entries[i] = e
		} else {
			last[e.id] = len(found.entries)
			found.entries = append(found.entries, e)
		}
		if full := most > 0 && (len(found.entries) >= most || size > maxRoundBytes); full {
			found.more, found.whole = true, false
			break
		}
	}
	return found, s.narrow(ctx, found.entries)
}

func (s *server) entry(r *loombridgev1.Record) entry {
	e := entryOf(recordOf(r), fmt.Sprint(r.GetVersion()), s.notes)
	if s.notes && r.GetSupersededBy() != "" {
		e.state = outside
	}
	return e
}

// filterIDs is how many ids are asked for at once.
const filterIDs = 20

// narrow marks as outside what the filter does not let through.
func (s *server) narrow(ctx context.Context, all []entry) error {
	if s.filter == "" {
		return nil
	}
	for len(all) > 0 {
		part := all[:min(filterIDs, len(all))]
		all = all[len(part):]
		var ids []string
		for _, e := range part {
			if e.state == present {
				ids = append(ids, fmt.Sprintf("id = %q", e.id))
			}
		}
		if len(ids) == 0 {
			continue
		}
		got, err := s.memory.ListRecords(ctx, &loombridgev1.ListRecordsRequest{
			AgentId: s.owner.Agent, UserId: s.owner.User, SpaceId: s.owner.Space, Peek: true, Tiers: []int32{2, 3, 4}, PageSize: 2 * filterIDs,
			Filter: fmt.Sprintf("(%s) AND (%s)", s.filter, strings.Join(ids, " OR ")),
		})
		if err != nil {
			return err
		}
		through := make(map[string]bool)
		for _, r := range got.GetRecords() {
			through[r.GetId()] = true
		}
		if got.GetNextPageToken() != "" && len(part) > 1 { // long records: one by one
			for i := range part {
				if err := s.narrow(ctx, part[i:i+1]); err != nil {
					return err
				}
			}
			continue
		}
		for i := range part {
			if part[i].state == present && !through[part[i].id] {
				part[i].state = outside
			}
		}
	}
	return nil
}

func (s *server) fetch(ctx context.Context, ask *loombridgev1.GetRecordRequest) (entry, error) {
	ask.AgentId, ask.UserId, ask.SpaceId, ask.Peek = s.owner.Agent, s.owner.User, s.owner.Space, true
	r, err := s.memory.GetRecord(ctx, ask)
	if convert.Reason(err) == "RECORD_NOT_FOUND" {
		return entry{id: ask.GetId()}, nil
	}
	if err != nil {
		return entry{}, err
	}
	one := []entry{s.entry(r)}
	err = s.narrow(ctx, one)
	return one[0], err
}

func (s *server) get(ctx context.Context, id string) (entry, error) {
	return s.fetch(ctx, &loombridgev1.GetRecordRequest{Name: &loombridgev1.GetRecordRequest_Id{Id: id}})
}

func (s *server) create(ctx context.Context, r record.Record) (entry, error) {
	line, err := lineOf(r)
	if err != nil {
		return entry{}, &refusedError{err.Error()}
	}
	stream, err := s.lines.Import(ctx)
	if err != nil {
		return entry{}, err
	}
	err = stream.Send(&loombridgev1.ImportRequest{AgentId: s.owner.Agent, UserId: s.owner.User, SpaceId: s.owner.Space, ImportId: "sync", Lines: []string{string(line)}})
	if err != nil && !errors.Is(err, io.EOF) { // then the answer says why
		return entry{}, err
	}
	if _, err := stream.CloseAndRecv(); err != nil {
		return entry{}, s.taken(ctx, r, err)
	}
	e, err := s.get(ctx, r.ID)
	if err != nil || e.state == absent {
		return e, err
	}
	if e.record.Version != max(r.Version, 1) { // somebody was faster: the next round sees what they did
		e.hash, e.record = contentOf(r, s.notes), r
		e.mark.Hash = e.hash
	}
	return e, nil
}

// taken says whether the id of a record or its key is the one that is taken.
func (s *server) taken(ctx context.Context, r record.Record, err error) error {
	if convert.Reason(err) != "RECORD_EXISTS" || r.Key == "" {
		return judge(err)
	}
	switch there, got := s.get(ctx, r.ID); {
	case got != nil:
		return got
	case there.state != absent:
		return errMoved
	}
	holder, got := s.fetch(ctx, &loombridgev1.GetRecordRequest{Name: &loombridgev1.GetRecordRequest_Key{Key: r.Key}})
	if got != nil {
		return got
	}
	if holder.state == absent {
		return errMoved
	}
	return &keyTakenError{holder}
}

func (s *server) update(ctx context.Context, was entry, r record.Record) (entry, error) {
	now, err := s.get(ctx, was.id)
	if err != nil {
		return entry{}, err
	}
	if now.state == absent || now.mark.Stamp != was.mark.Stamp {
		return entry{}, errMoved
	}
	old := now.record
	if !s.notes && (old.Origin != r.Origin || old.SessionID != r.SessionID || fmt.Sprint(nonNil(old.DerivedFrom)) != fmt.Sprint(nonNil(r.DerivedFrom))) {
		return s.exchange(ctx, now, r)
	}
	save := &loombridgev1.MemorySaveRequest{Text: r.Text, Kind: r.Kind, Author: r.Author, Tags: r.Tags, Importance: &r.Importance, Pinned: r.Pinned}
	var mask []string
	differs := func(name string, a, b any) {
		if fmt.Sprint(a) != fmt.Sprint(b) {
			mask = append(mask, name)
		}
	}
	differs("text", old.Text, r.Text)
	differs("kind", old.Kind, r.Kind)
	differs("author", old.Author, r.Author)
	differs("tags", nonNil(old.Tags), nonNil(r.Tags))
	differs("importance", old.Importance, r.Importance)
	differs("pinned", old.Pinned, r.Pinned)
	differs("event_time", moment(old.EventTime), moment(r.EventTime))
	differs("valid_until", moment(old.ValidUntil), moment(r.ValidUntil))
	differs("metadata", plainJSON(old.Metadata), plainJSON(r.Metadata))
	if !s.notes {
		differs("expiry", expiryOf(old), expiryOf(r))
	}
	if len(mask) == 0 {
		return now, nil
	}
	if len(r.Metadata) > 0 {
		save.MetadataForm = &loombridgev1.MemorySaveRequest_MetadataJson{MetadataJson: string(r.Metadata)}
	}
	if !r.EventTime.IsZero() {
		save.EventTime = timestamppb.New(r.EventTime)
	}
	if !r.ValidUntil.IsZero() {
		save.ValidUntil = timestamppb.New(r.ValidUntil)
	}
	switch {
	case r.SlidingTTL > 0:
		save.Expiry = &loombridgev1.MemorySaveRequest_SlidingTtl{SlidingTtl: durationpb.New(r.SlidingTTL)}
	case !r.ExpireTime.IsZero():
		save.Expiry = &loombridgev1.MemorySaveRequest_ExpireTime{ExpireTime: timestamppb.New(r.ExpireTime)}
	}
	// Who wrote it is what the other server says: by that alone no record begins to instruct.
	if r.Writer != writer.Program || old.Writer != writer.Program || r.Kind != old.Kind {
		ctx = asModel(ctx)
	}
	got, err := s.memory.UpdateRecord(ctx, &loombridgev1.UpdateRecordRequest{
		AgentId: s.owner.Agent, UserId: s.owner.User, SpaceId: s.owner.Space, Name: &loombridgev1.UpdateRecordRequest_Id{Id: was.id},
		Record: save, UpdateMask: &fieldmaskpb.FieldMask{Paths: mask}, ExpectedVersion: &old.Version,
	})
	if err != nil {
		return entry{}, judge(err)
	}
	return s.entry(got), nil
}

// asModel takes the right from a change to instruct models: what an import or a model has said on
// either side does not become a program's word by being copied.
func asModel(ctx context.Context) context.Context {
	return metadata.AppendToOutgoingContext(ctx, auth.WriterKey, writer.Model.String())
}

// exchange deletes a record and saves it anew, where a field differs that no update changes. Where it
// ends in between, the other side has changed what is deleted here, and the change wins.
func (s *server) exchange(ctx context.Context, was entry, r record.Record) (entry, error) {
	if err := s.remove(ctx, was); err != nil {
		return entry{}, err
	}
	return s.create(ctx, r)
}

func (s *server) remove(ctx context.Context, was entry) error {
	var version int64
	if _, err := fmt.Sscan(was.mark.Stamp, &version); err != nil {
		return fmt.Errorf("the state of the sync is damaged: version %q", was.mark.Stamp)
	}
	if s.notes {
		ctx = asModel(ctx)
	}
	_, err := s.memory.DeleteRecords(ctx, &loombridgev1.DeleteRecordsRequest{
		AgentId: s.owner.Agent, UserId: s.owner.User, SpaceId: s.owner.Space, Name: &loombridgev1.DeleteRecordsRequest_Id{Id: was.id}, ExpectedVersion: &version,
	})
	if err == nil || convert.Reason(err) == "RECORD_NOT_FOUND" {
		return nil
	}
	return judge(err)
}

func (s *server) await(ctx context.Context, after string) error {
	ctx, stop := context.WithCancel(ctx)
	defer stop()
	stream, err := s.watch(ctx, after)
	if err != nil {
		return err
	}
	for {
		change, err := stream.Recv()
		switch {
		case convert.Reason(err) == "POSITION_GONE":
			return nil
		case err != nil || !change.GetCaughtUp():
			return err
		}
	}
}
