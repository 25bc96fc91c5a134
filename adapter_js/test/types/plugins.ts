// What a plugin's class may look like, and what the types reject.

import type { ConfigSchema, ToolDefinition } from "@opentabs-dev/plugin-sdk";
import { OpenTabsPlugin } from "@opentabs-dev/plugin-sdk";
import { type Equal, is } from "./equal.js";
import { addNote, listOrders } from "./tools.js";

class Overriding extends OpenTabsPlugin {
  override readonly name = "shop";
  override readonly displayName = "Shop";
  override readonly description = "Reads orders";
  override readonly urlPatterns = ["*://*.shop.example/*"];
  override readonly excludePatterns = ["*://admin.shop.example/*"];
  override readonly homepage = "https://shop.example/";
  override readonly tools = [listOrders, addNote];
  override readonly configSchema: ConfigSchema = {
    site: { type: "url", label: "Site", required: true },
    view: { type: "select", options: ["list", { value: "grid", label: "Grid" }] },
  };
  override async isReady() {
    return true;
  }
  override onActivate() {}
  override async onDeactivate() {}
  override teardown() {}
  override onNavigate(url: string) {
    is<Equal<typeof url, string>>(true);
  }
  override onToolInvocationStart(_tool: string) {}
  override onToolInvocationEnd(_tool: string, _success: boolean, _durationMs: number) {}
}

class Plain extends OpenTabsPlugin {
  name = "shop";
  displayName = "Shop";
  readonly description: string = "Reads orders";
  urlPatterns: string[] = [];
  readonly tools: ToolDefinition[] = [listOrders, addNote];
  isReady(): Promise<boolean> {
    return Promise.resolve(true);
  }
}

const plugins: OpenTabsPlugin[] = [new Overriding(), new Plain()];
export default plugins[0];

// @ts-expect-error it is there to be extended
new OpenTabsPlugin();

// @ts-expect-error no isReady()
export class NeverReady extends OpenTabsPlugin {
  name = "shop";
  displayName = "Shop";
  description = "Reads orders";
  urlPatterns = [];
  tools = [];
}

// @ts-expect-error no tools
export class WithoutTools extends OpenTabsPlugin {
  name = "shop";
  displayName = "Shop";
  description = "Reads orders";
  urlPatterns = [];
  isReady = async () => true;
}

export class Wrong extends Plain {
  // @ts-expect-error a name is a string
  override name = 1;
  // @ts-expect-error a plugin is ready or not, and says so later
  override isReady() {
    return "yes";
  }
}

export class WrongTools extends Overriding {
  // @ts-expect-error these are not tools
  override readonly tools = [{ name: "list_orders" }];
}

export class WrongHook extends OpenTabsPlugin {
  name = "shop";
  displayName = "Shop";
  description = "Reads orders";
  urlPatterns = [];
  tools = [];
  isReady = async () => true;
  // @ts-expect-error a URL is a string
  override onNavigate(_url: number) {}
}

// @ts-expect-error a kind of setting that does not exist
export const settings: ConfigSchema = { color: { type: "colour" } };
