package mcp

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net/url"
	"strings"
	"unicode/utf8"

	sdk "github.com/modelcontextprotocol/go-sdk/mcp"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"

	loombridgev1 "github.com/loom-bridge/loom-bridge/proto/gen/loombridge/v1"
)

// scheme is that of all URIs here: loom://blob/step_012, loom://step/…, loom://record/….
const scheme = "loom"

// listedResources is how many resources one page of the list has.
const listedResources = 50

const jsonType = "application/json"

// readers are how the kinds of resources are read, by the host of their URI.
func (s *Server) readers() map[string]func(who caller, uri, name string) (*sdk.ResourceContents, error) {
	return map[string]func(who caller, uri, name string) (*sdk.ResourceContents, error){
		"blob": s.blobResource, "step": s.stepResource, "record": s.recordResource,
	}
}

func (s *Server) addResources() {
	for _, t := range []sdk.ResourceTemplate{
		{Name: "blob", URITemplate: "loom://blob/{+name}", Description: "What was put aside of a step, whole, up to 1 MiB"},
		{Name: "record", URITemplate: "loom://record/{id}", Description: "One long-term memory", MIMEType: jsonType},
		{Name: "step", URITemplate: "loom://step/{id}", Description: "What a session keeps of one tool call", MIMEType: jsonType},
	} {
		s.server.AddResourceTemplate(&t, s.readResource)
	}
	s.server.AddReceivingMiddleware(s.surviving, func(next sdk.MethodHandler) sdk.MethodHandler {
		return func(ctx context.Context, method string, request sdk.Request) (sdk.Result, error) {
			if list, ok := request.(*sdk.ListResourcesRequest); ok {
				return s.listResources(ctx, list)
			}
			return next(ctx, method, request)
		}
	})
}

// listResources lists what the caller's session has put aside, the newest last, a page
// at a time.
func (s *Server) listResources(ctx context.Context, request *sdk.ListResourcesRequest) (sdk.Result, error) {
	if request.Params == nil {
		request.Params = &sdk.ListResourcesParams{}
	}
	who := s.callerOf(ctx, request)
	ask := &loombridgev1.ListBlobsRequest{AgentId: who.agent, SessionId: who.session, PageSize: listedResources, PageToken: request.Params.Cursor}
	page, err := s.blobs.ListBlobs(who.ctx, ask)
	if err != nil {
		return nil, plain(err)
	}
	out := &sdk.ListResourcesResult{Resources: []*sdk.Resource{}, NextCursor: page.GetNextPageToken()}
	out.CacheScope = "private"
	for _, b := range page.GetBlobs() {
		name := b.GetPath()
		if name == "" {
			name = b.GetRef()
		}
		out.Resources = append(out.Resources, &sdk.Resource{
			Name: name, URI: (&url.URL{Scheme: scheme, Host: "blob", Path: "/" + name}).String(), MIMEType: b.GetMediaType(), Size: b.GetSize(),
		})
	}
	return out, nil
}

func (s *Server) readResource(ctx context.Context, request *sdk.ReadResourceRequest) (*sdk.ReadResourceResult, error) {
	address := request.Params.URI
	uri, err := url.Parse(address)
	if err != nil || uri.Scheme != scheme {
		return nil, sdk.ResourceNotFoundError(address)
	}
	read, ok := s.readers()[uri.Host]
	if !ok {
		return nil, sdk.ResourceNotFoundError(address)
	}
	contents, err := read(s.callerOf(ctx, request), address, strings.TrimPrefix(uri.Path, "/"))
	switch {
	case status.Code(err) == codes.NotFound, status.Code(err) == codes.InvalidArgument:
		return nil, sdk.ResourceNotFoundError(address)
	case err != nil:
		return nil, plain(err)
	}
	return &sdk.ReadResourceResult{Contents: []*sdk.ResourceContents{contents}}, nil
}

// errLongBlob: a blob is too long to be a resource.
var errLongBlob = errors.New("mcp: TOO_LARGE: longer than a resource may be; read it in parts with blob_read")

func (s *Server) blobResource(who caller, uri, name string) (*sdk.ResourceContents, error) {
	info, data, err := s.blob(who, &loombridgev1.ReadBlobRequest{Name: name, Limit: maxReadBytes, SessionId: who.session})
	if err != nil {
		return nil, err
	}
	if info.GetSize() > maxReadBytes {
		return nil, fmt.Errorf("%w: it has %d bytes", errLongBlob, info.GetSize())
	}
	contents := &sdk.ResourceContents{URI: uri, MIMEType: info.GetMediaType()}
	if utf8.Valid(data) {
		contents.Text = string(data)
	} else {
		contents.Blob = data
	}
	return contents, nil
}

func (s *Server) stepResource(who caller, uri, name string) (*sdk.ResourceContents, error) {
	got, err := s.sessions.GetStep(who.ctx, &loombridgev1.GetStepRequest{AgentId: who.agent, StepId: name})
	if err != nil {
		return nil, err
	}
	text, err := protoJSON(got)
	return jsonResource(uri, text), err
}

func (s *Server) recordResource(who caller, uri, name string) (*sdk.ResourceContents, error) {
	got, err := s.memory.GetRecord(who.ctx, &loombridgev1.GetRecordRequest{
		AgentId: who.agent, Name: &loombridgev1.GetRecordRequest_Id{Id: name},
	})
	if err != nil {
		return nil, err
	}
	text, err := json.Marshal(recordOf(got))
	return jsonResource(uri, text), err
}

func jsonResource(uri string, text []byte) *sdk.ResourceContents {
	return &sdk.ResourceContents{URI: uri, MIMEType: jsonType, Text: string(text)}
}
