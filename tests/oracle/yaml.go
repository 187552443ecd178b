package main

import (
	"encoding/json"
	"errors"
	"io"
	"strings"

	kyaml "sigs.k8s.io/kustomize/kyaml/yaml"
	"sigs.k8s.io/yaml"
)

// keepKeys makes each key a string, as kustomize writes it back: go-yaml would make a number of `1`.
func keepKeys(node *kyaml.Node) {
	for number, child := range node.Content {
		keepKeys(child)
		isKey := node.Kind == kyaml.MappingNode && number%2 == 0
		if isKey && child.Kind == kyaml.ScalarNode && child.Tag != "!!merge" && child.Tag != "!!null" {
			child.Tag = "!!str"
		}
	}
}

func init() {
	// Read: YAML text to JSON, as kubectl reads it. Fields: text, strict.
	operations["yaml.read"] = func(request json.RawMessage) (any, error) {
		var in struct {
			Text   string `json:"text"`
			Strict bool   `json:"strict"`
		}
		if err := json.Unmarshal(request, &in); err != nil {
			return nil, err
		}
		convert := yaml.YAMLToJSON
		if in.Strict {
			convert = yaml.YAMLToJSONStrict
		}
		text, err := convert([]byte(in.Text))
		if err != nil {
			return nil, err
		}
		return json.RawMessage(text), nil
	}
	// Read: the first document of a text to JSON, as kyaml decodes it. Fields: text.
	operations["yaml.read3"] = func(request json.RawMessage) (any, error) {
		var in struct {
			Text string `json:"text"`
		}
		if err := json.Unmarshal(request, &in); err != nil {
			return nil, err
		}
		var node kyaml.Node
		err := kyaml.NewDecoder(strings.NewReader(in.Text)).Decode(&node)
		if errors.Is(err, io.EOF) {
			return nil, nil
		}
		if err != nil {
			return nil, err
		}
		keepKeys(&node)
		var value any
		if err := node.Decode(&value); err != nil {
			return nil, err
		}
		text, err := json.Marshal(value)
		return json.RawMessage(text), err
	}
	// Write: a JSON value to YAML text. Fields: value.
	operations["yaml.write"] = func(request json.RawMessage) (any, error) {
		var in struct {
			Value json.RawMessage `json:"value"`
		}
		if err := json.Unmarshal(request, &in); err != nil {
			return nil, err
		}
		text, err := yaml.JSONToYAML(in.Value)
		return string(text), err
	}
}
