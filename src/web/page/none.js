/* The page for a URL that names no page: it throws, and the router says so. */

import { ApiError } from "../api.js";


export async function show() {
    throw new ApiError(404, "NotFound", "There is no such page.");
}
