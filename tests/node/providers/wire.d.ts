// Requests as they travel. Google's SDK renames fields on their way, so that its types serve for the pieces only.

import type { Content, GenerationConfig, Tool, ToolConfig } from "@google/genai";

// Enumerations travel as their values.
type Wire<T> = T extends string
  ? `${T}`
  : T extends (infer U)[]
    ? Wire<U>[]
    : T extends object
      ? { [K in keyof T]: Wire<T[K]> }
      : T;

export type GeminiRequest = {
  contents: Wire<Content>[];
  systemInstruction?: Wire<Content>;
  tools?: Wire<Tool>[];
  toolConfig?: Wire<ToolConfig>;
  generationConfig?: Wire<GenerationConfig>;
};

export type { ChatCompletionCreateParamsStreaming as ChatRequest } from "openai/resources/chat/completions";
export type { ResponseCreateParamsStreaming as ResponsesRequest } from "openai/resources/responses/responses";
export type { MessageCreateParamsStreaming as AnthropicRequest } from "@anthropic-ai/sdk/resources/messages";
