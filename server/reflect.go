package server

import (
	"context"
	"fmt"
	"strings"
	"time"

	"google.golang.org/grpc"
	"google.golang.org/protobuf/proto"
)

const (
	// maxReflections bounds the streams of reflection: they need no credential.
	maxReflections = 64
	// maxReflected bounds what one of them is told. A tool that reads all
	// services asks for some twenty files.
	maxReflected = 256
	// maxReflectionBytes bounds a question: the name of a file or a symbol.
	maxReflectionBytes = 4 * kib
	// maxReflectionTime bounds how long one stays open. Tools read what they need
	// at their start; grpcurl keeps the stream for as long as its call lasts, and
	// does not miss it.
	maxReflectionTime = time.Minute
)

// reflectionPrefix is what the names of the services of reflection begin with, of any version.
const reflectionPrefix = "grpc.reflection."

// isReflection tells whether a method, with the service in front, is one of
// reflection.
func isReflection(method string) bool { return strings.HasPrefix(method, "/"+reflectionPrefix) }

// admitReflection takes in a stream of reflection, if there are not too many.
func (s *Server) admitReflection(ctx context.Context) error {
	select {
	case s.reflections <- struct{}{}:
		context.AfterFunc(ctx, func() { <-s.reflections })
		return nil
	default:
		return fmt.Errorf("%w: %d streams of reflection are open", ErrOverloaded, cap(s.reflections))
	}
}

// boundDescriptions bounds what one stream of reflection may ask for, and for how
// long.
func boundDescriptions(srv any, stream grpc.ServerStream, info *grpc.StreamServerInfo, next grpc.StreamHandler) error {
	if !isReflection(info.FullMethod) {
		return next(srv, stream)
	}
	over := time.AfterFunc(maxReflectionTime, func() {
		endStream(stream.Context(), fmt.Errorf("server: a stream of reflection stays open for %v: %w", maxReflectionTime, context.DeadlineExceeded))
	})
	defer over.Stop()
	return next(srv, &countedStream{ServerStream: stream})
}

// countedStream counts what it is asked. Only one goroutine may receive.
type countedStream struct {
	grpc.ServerStream
	asked int
}

func (s *countedStream) RecvMsg(m any) error {
	if s.asked++; s.asked > maxReflected {
		return fmt.Errorf("%w: %d descriptions were asked for in one stream of reflection", ErrOverloaded, maxReflected)
	}
	if err := s.ServerStream.RecvMsg(m); err != nil {
		return err
	}
	if question, ok := m.(proto.Message); ok && proto.Size(question) > maxReflectionBytes {
		return fmt.Errorf("%w: a question of reflection has at most %d bytes", ErrTooLarge, maxReflectionBytes)
	}
	return nil
}
