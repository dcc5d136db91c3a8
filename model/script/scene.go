package script

import (
	"slices"
	"strings"

	"github.com/parley-run/parley/model"
	"github.com/parley-run/parley/taint"
)

// scene is what a script sees of a request.
type scene struct {
	system   string
	text     string   // the last text of the user, out of its fence
	replies  int      // assistant messages before that text
	round    int      // assistant messages after it
	results  []string // texts of the last message's results, out of their fences
	tools    []model.Tool
	messages int
}

func sceneOf(req model.Request) scene {
	s := scene{system: req.System, tools: req.Tools, messages: len(req.Messages)}
	for _, msg := range req.Messages {
		switch {
		case msg.Role == model.Assistant:
			s.round++
		case msg.Text != "":
			s.text = clean(msg.Text)
			s.replies += s.round
			s.round = 0
		}
		s.results = nil
		for _, result := range msg.Results {
			s.results = append(s.results, clean(result.Text))
		}
	}
	return s
}

// clean takes a text out of its fence and makes it fit to be a delta.
func clean(text string) string { return strings.ToValidUTF8(taint.Unfence(text), "\uFFFD") }

// condition is one word of a when line with its value.
type condition func(scene) bool

// conditions reads the value of a condition.
var conditions = map[string]func(*line) (condition, error){
	"is": func(l *line) (condition, error) {
		text, err := l.quoted()
		return func(s scene) bool { return s.text == text }, err
	},
	"has": func(l *line) (condition, error) {
		text, err := l.quoted()
		return func(s scene) bool { return strings.Contains(s.text, text) }, err
	},
	"system": func(l *line) (condition, error) {
		text, err := l.quoted()
		return func(s scene) bool { return strings.Contains(s.system, text) }, err
	},
	"tool": func(l *line) (condition, error) {
		name, err := l.quoted()
		named := func(tool model.Tool) bool { return tool.Name == name }
		return func(s scene) bool { return slices.ContainsFunc(s.tools, named) }, err
	},
	"replies": func(l *line) (condition, error) {
		n, err := l.number()
		return func(s scene) bool { return s.replies == n }, err
	},
}
