<?php
// The same shop behind Symfony's own cache, which knows one language at a time.

use Shop\Kernel;
use Symfony\Bundle\FrameworkBundle\HttpCache\HttpCache;
use Symfony\Component\HttpFoundation\Request;
use Symfony\Component\HttpKernel\HttpCache\Esi;
use Symfony\Component\HttpKernel\HttpCache\Ssi;

require __DIR__.'/../autoload.php';

$kernel = new Kernel('prod', false);
$request = Request::createFromGlobals();
$surrogate = '/ssi' === $request->getPathInfo() ? new Ssi() : new Esi();
$cache = new HttpCache($kernel, null, $surrogate, ['trace_level' => 'short']);
$response = $cache->handle($request);
$response->send();
$cache->terminate($request, $response);
