package browser

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"sync"
	"time"

	"github.com/chromedp/cdproto"
	"github.com/chromedp/cdproto/cdp"
	cdppage "github.com/chromedp/cdproto/page"
)

const (
	maxFrames         = 600      // of a life
	maxRecordingBytes = 64 << 20 // of a life
	maxRecordings     = 20       // that are kept, the newest
	photographLimit   = 5 * time.Second
)

// picture is a picture of a page.
type picture struct {
	jpeg []byte
	at   time.Time
}

func (l *life) lastPicture() (jpeg []byte, at time.Time, ok bool) {
	l.pictures.Lock()
	defer l.pictures.Unlock()
	return l.picture.jpeg, l.picture.at, l.picture.jpeg != nil
}

// forget drops the picture of a life that is over.
func (l *life) forget() {
	l.pictures.Lock()
	defer l.pictures.Unlock()
	l.picture = picture{}
}

// photograph takes a picture for whoever asks for the newest one. A page that
// cannot be photographed now goes without; only a cut call is an error.
func (l *life) photograph(ctx context.Context) error {
	limited, cancel := context.WithTimeout(ctx, photographLimit)
	defer cancel()
	_ = l.capture(limited)
	return ctx.Err()
}

// capture takes a picture of the window, coarser until it is small enough.
func (l *life) capture(ctx context.Context) error {
	for _, quality := range []int64{75, 40, 10} {
		shot, err := cdp.Call(ctx, l.page.target, cdppage.CaptureScreenshot, cdppage.CaptureScreenshotParams{
			Format: cdppage.CaptureScreenshotFormatJpeg, Quality: &quality, OptimizeForSpeed: new(true),
		})
		if err != nil {
			return err
		}
		if len(shot.Data) <= MaxScreenshotBytes*3/4 {
			l.pictures.Lock()
			l.picture = picture{shot.Data, time.Now()}
			l.pictures.Unlock()
			return nil
		}
	}
	return refuse("the picture has more than %d bytes", MaxScreenshotBytes)
}

func (l *life) screenshot(ctx context.Context) (any, error) {
	err := l.capture(ctx)
	if _, said := errors.AsType[*cdproto.Error](err); said {
		return nil, refuse("the page cannot be photographed now")
	}
	if err != nil {
		return nil, err
	}
	address, _, err := l.page.describe(ctx)
	jpeg, _, _ := l.lastPicture()
	return Picture{URL: address, MediaType: "image/jpeg", Data: jpeg}, err
}

// recording writes what the window shows, frame by frame.
type recording struct {
	folder string
	cancel context.CancelFunc
	wait   sync.WaitGroup

	mu     sync.Mutex
	frames int
	bytes  int
	failed error
}

func (r *recording) close() {
	r.cancel()
	r.wait.Wait()
}

// keep writes one frame. When there is no room for more, or the disk fails, the
// rest is dropped.
func (r *recording) keep(jpeg []byte) {
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.failed != nil || r.full() {
		return
	}
	r.failed = os.WriteFile(filepath.Join(r.folder, fmt.Sprintf("%06d.jpg", r.frames+1)), jpeg, 0o600)
	if r.failed == nil {
		r.frames++
		r.bytes += len(jpeg)
	}
}

func (r *recording) full() bool { return r.frames >= maxFrames || r.bytes >= maxRecordingBytes }

// say describes a recording. An error is that of the disk.
func (r *recording) say() (Recording, error) {
	r.mu.Lock()
	defer r.mu.Unlock()
	folder := filepath.Join(recordings, filepath.Base(r.folder))
	return Recording{Folder: folder, Frames: r.frames, Full: r.full()}, r.failed
}

// recordStart begins the recording of a life. A life has one.
func (l *life) recordStart(ctx context.Context) (any, error) {
	p := l.page
	p.mu.Lock()
	runs := p.recording != nil
	p.mu.Unlock()
	if runs {
		return nil, refuse("a recording is running")
	}
	folder := filepath.Join(l.directory, recordings, string(l.of))
	if err := makeRoom(filepath.Join(l.directory, recordings), folder); err != nil {
		return nil, refuse("the recording cannot be written: %v", errors.Unwrap(err))
	}
	r := &recording{folder: folder}
	var within context.Context
	within, r.cancel = context.WithCancel(p.ctx)
	frames := cdp.Events(within, p.target, cdppage.ScreencastFrame)
	r.wait.Go(func() {
		for frame, err := range frames {
			if err != nil {
				return
			}
			r.keep(frame.Data)
			_, _ = cdp.Call(within, p.target, cdppage.ScreencastFrameAck, cdppage.ScreencastFrameAckParams{SessionID: frame.SessionID})
		}
	})
	p.mu.Lock()
	p.recording = r
	p.mu.Unlock()
	_, err := cdp.Call(ctx, p.target, cdppage.StartScreencast, cdppage.StartScreencastParams{
		Format: cdppage.StartScreencastFormatJpeg, Quality: new(int64(60)), MaxWidth: 1024, MaxHeight: 768,
	})
	if err != nil {
		return nil, err
	}
	said, err := r.say()
	return said, err
}

// recordStop ends the recording. Its frames stay on the disk.
func (l *life) recordStop(ctx context.Context) (any, error) {
	p := l.page
	p.mu.Lock()
	r := p.recording
	p.recording = nil
	p.mu.Unlock()
	if r == nil {
		return nil, refuse("no recording is running")
	}
	_, err := cdp.Call(ctx, p.target, cdppage.StopScreencast, cdp.Empty{})
	r.close()
	if err != nil {
		return nil, err
	}
	said, err := r.say()
	if err != nil {
		return nil, refuse("the recording could not be written to its end")
	}
	return said, nil
}

// makeRoom makes an empty folder for a recording, and removes the oldest of those
// that are there.
func makeRoom(all, folder string) error {
	if err := os.RemoveAll(folder); err != nil {
		return err
	}
	if err := os.MkdirAll(folder, 0o700); err != nil {
		return err
	}
	entries, err := os.ReadDir(all)
	if err != nil {
		return err
	}
	age := map[string]time.Time{}
	for _, entry := range entries {
		if info, err := entry.Info(); err == nil {
			age[entry.Name()] = info.ModTime()
		}
	}
	slices.SortFunc(entries, func(a, b os.DirEntry) int { return age[b.Name()].Compare(age[a.Name()]) })
	for _, entry := range entries[min(len(entries), maxRecordings):] {
		if err := os.RemoveAll(filepath.Join(all, entry.Name())); err != nil {
			return err
		}
	}
	return nil
}
