<?php
// Pages that live for ten minutes, with a list in them that lives for ten seconds, and a greeting that is one visitor's.

namespace Shop\Controller;

use Symfony\Bundle\FrameworkBundle\Controller\AbstractController;
use Symfony\Component\HttpFoundation\Request;
use Symfony\Component\HttpFoundation\Response;

final class ShopController extends AbstractController
{
    private const BOOKS = [
        'The Art & Craft of Caching' => 34,
        'Pages <Assembled>' => 21,
        'A Shelf of One\'s Own' => 13,
    ];

    public function esi(): Response
    {
        return $this->page('esi.html.twig');
    }

    public function ssi(): Response
    {
        return $this->page('ssi.html.twig');
    }

    /** A page in which nothing is anybody's own. */
    public function prices(): Response
    {
        return $this->page('prices.html.twig');
    }

    /** A fragment for everybody, which may stand in for an hour when the shop is gone: `s-maxage` alone would forbid it. */
    public function list(string $heading): Response
    {
        $values = ['heading' => $heading, 'books' => self::BOOKS, 'made' => self::now()];
        $response = $this->render('list.html.twig', $values)->setSharedMaxAge(10);
        $response->headers->addCacheControlDirective('stale-if-error', '3600');

        return $response;
    }

    /** A fragment for one visitor. */
    public function greeting(Request $request): Response
    {
        $visitor = $request->cookies->get('visitor', 'stranger');

        return $this->render('greeting.html.twig', ['visitor' => $visitor])->setPrivate();
    }

    private function page(string $template): Response
    {
        return $this->render($template, ['made' => self::now()])->setSharedMaxAge(600);
    }

    private static function now(): string
    {
        return sprintf('%.6F', microtime(true));
    }
}
