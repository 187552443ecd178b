package main

import (
	"encoding/json"

	"sigs.k8s.io/yaml"
)

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
