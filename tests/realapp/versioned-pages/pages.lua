-- A page from Redis: first its version, then the body under a key with that version. Whatever is wrong there is a miss.
-- {redis} is filled in by the check, as the arguments of connect().
local client = require "nginx.redis"

local function page()
    if ngx.var.request_method ~= "GET" and ngx.var.request_method ~= "HEAD" then
        return nil
    end
    local red = client:new()
    red:set_timeout(200)
    if not red:connect({redis}) then
        return nil
    end
    local version = red:hget("resource_versions", ngx.var.request_uri)
    if not version or version == ngx.null then
        if version then red:set_keepalive(60000, 1024) end
        return nil
    end
    local url = ngx.var.scheme .. "://" .. ngx.var.http_host .. ngx.var.request_uri
    local body = red:get(url .. ":version=" .. version)
    if not body then
        return nil
    end
    red:set_keepalive(60000, 1024)
    return body ~= ngx.null and body or nil
end

local body = page()
if not body then
    return ngx.exec("@app")
end
ngx.header["Content-Type"] = "text/html; charset=utf-8"
ngx.header["Content-Length"] = #body
ngx.header["X-From"] = "redis"
ngx.print(body)
